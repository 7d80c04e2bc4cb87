// SPDX-License-Identifier: Apache-2.0
// The subcommands: each adds itself to the parser, with what to run.
#pragma once

#include "cli/options/parser.hpp"

namespace halfscope::cli {

// To add a subcommand: one file, a declaration here, a line in main.cpp.
void add_analyze(Parser& parser);
void add_recommend(Parser& parser);
void add_report(Parser& parser);
void add_compare(Parser& parser);
void add_policies(Parser& parser);
void add_simulate(Parser& parser);
void add_info(Parser& parser);
void add_emulate(Parser& parser);

}  // namespace halfscope::cli
