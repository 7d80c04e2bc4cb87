// SPDX-License-Identifier: Apache-2.0
// --fail-if: conditions at which a pipeline is to stop.
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/gates/condition.hpp"
#include "analyzers/study.hpp"
#include "cli/options/parser.hpp"

namespace halfscope::cli::gates {

/// --fail-if, repeatable.
void add_fail_if(options::Command& command, std::vector<std::string>& conditions);

/// Throws BadUsage naming the option.
std::vector<analyzers::gates::Condition> parse_conditions(const std::vector<std::string>& texts,
                                                          analyzers::gates::Subject subject);

enum class Outcome { kept, violated, undecided, not_tested };

/// What became of one condition on one tensor, on a log, or on a recommendation.
struct GateTest {
  std::size_t condition = 0;  ///< which --fail-if, from 0
  std::string condition_text;
  std::string log, name;  ///< as recorded; what is tested on all logs has no name
  Outcome outcome = Outcome::kept;
  bool of_log = false;  ///< of the log's timeline, not of a recommendation
  std::string text;  ///< "flushed_to_zero 12 of 72 (16.7 %) > 0.1 %"; printable, empty where kept

  /// With the place before it, as stderr has it.
  std::string line() const;
};

/// What the tests of all conditions had to say: in the order of the conditions, and of the tensors.
struct GateLines {
  std::vector<GateTest> tests;
};

/// Throws BadUsage where a condition is for no tensor, or no tensor has its field; where it is of
/// the timeline, and no log has one.
GateLines test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::Findings& found);
GateLines test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::compare::Comparison& comparison);
GateLines test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::Study& study);

/// Writes the lines to stderr; the exit code.
int close_gate(const GateLines& lines);

}  // namespace halfscope::cli::gates
