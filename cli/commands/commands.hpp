// SPDX-License-Identifier: Apache-2.0
// The subcommands: each adds itself to the parser, with what to run.
#pragma once

#include "cli/options/parser.hpp"

namespace halfscope::cli::commands {

// To add a subcommand: one file, a declaration here, a line in main.cpp.
void add_analyze(options::Parser& parser);
void add_recommend(options::Parser& parser);
void add_report(options::Parser& parser);
void add_count(options::Parser& parser);
void add_merge(options::Parser& parser);
void add_compare(options::Parser& parser);
void add_reduce(options::Parser& parser);
void add_policies(options::Parser& parser);
void add_simulate(options::Parser& parser);
void add_logs(options::Parser& parser);
void add_info(options::Parser& parser);
void add_emulate(options::Parser& parser);
void add_mma(options::Parser& parser);

}  // namespace halfscope::cli::commands
