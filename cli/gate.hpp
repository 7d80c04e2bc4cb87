// SPDX-License-Identifier: Apache-2.0
// --fail-if: conditions at which a pipeline is to stop.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "analyzers/condition.hpp"

namespace halfscope::cli {

/// --fail-if, repeatable.
void add_fail_if(CLI::App& command, std::vector<std::string>& conditions);

/// Throws BadUsage naming the option.
std::vector<analyzers::Condition> parse_conditions(const std::vector<std::string>& texts,
                                                   analyzers::Subject subject);

/// What the tests of all conditions had to say, one line each.
struct GateLines {
  std::vector<std::string> violations, notes;
};

/// Throws BadUsage where a condition is for no tensor, or no tensor has its field.
GateLines test_conditions(const std::vector<analyzers::Condition>& conditions,
                          const analyzers::Analysis& analysis);
GateLines test_conditions(const std::vector<analyzers::Condition>& conditions,
                          const analyzers::Recommendation& advice);

/// Writes the lines to stderr; the exit code.
int close_gate(const GateLines& lines);

}  // namespace halfscope::cli
