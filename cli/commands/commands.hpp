// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each function adds one to the parser, with its options and the function to run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/parser.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::cli::commands {

// A new subcommand needs a source file, a declaration here, and a line in main.cpp.
void add_analyze(options::Parser& parser);
void add_recommend(options::Parser& parser);
void add_report(options::Parser& parser);
void add_count(options::Parser& parser);
void add_merge(options::Parser& parser);
void add_compare(options::Parser& parser);
void add_reduce(options::Parser& parser);
void add_weights(options::Parser& parser);
void add_policies(options::Parser& parser);
void add_simulate(options::Parser& parser);
void add_logs(options::Parser& parser);
void add_info(options::Parser& parser);
void add_emulate(options::Parser& parser);
void add_mma(options::Parser& parser);
void add_explain(options::Parser& parser);
void add_quantise(options::Parser& parser);
void add_conform(options::Parser& parser);
void add_vectors(options::Parser& parser);

/// Adds the options of `mma` to `explain`. The result explains operands, as words of a line of mma.
std::function<std::vector<reports::answer::Section>(const std::vector<std::string>&)>
add_sum_options(options::Command& command);

}  // namespace halfscope::cli::commands
