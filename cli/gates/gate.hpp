// SPDX-License-Identifier: Apache-2.0
// --fail-if: conditions under which a CI pipeline should stop.
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/gates/condition.hpp"
#include "analyzers/study.hpp"
#include "cli/options/parser.hpp"

namespace halfscope::cli::gates {

struct GateOptions {
  std::vector<std::string> fail_if;  ///< the conditions
  std::string junit;                 ///< file for the results as JUnit XML; empty: none
};

/// Adds the options --fail-if, which may be repeated, and --junit.
void add_gate(options::Command& command, GateOptions& options);

/// Parses the conditions. Throws BadUsage, whose message names the option: also if the file for the
/// results is stdout, or if there are no conditions to write to it.
std::vector<analyzers::gates::Condition> parse_conditions(const GateOptions& options,
                                                          analyzers::gates::Subject subject);

/// Result of one condition: `kept` if it is false, `violated` if it is true.
enum class Outcome { kept, violated, undecided, not_tested };

/// The test of one condition on one tensor, one log, or one recommendation.
struct GateTest {
  std::size_t condition = 0;  ///< index of the --fail-if option
  std::string condition_text;
  std::string log, name;  ///< as recorded; `name` is empty unless a tensor is tested
  Outcome outcome = Outcome::kept;
  bool of_log = false;  ///< true: a log's field is tested
  std::string text;     ///< "flushed_to_zero 12 of 72 (16.7 %) > 0.1 %"; empty if kept

  /// Returns the log, the tensor and `text` as one line for stderr.
  std::string line() const;
};

/// Tests of all conditions, in the order of the conditions and, for each, of the tensors.
using GateTests = std::vector<GateTest>;

/// Tests the conditions. Throws BadUsage if a condition applies to no tensor, if no such tensor has
/// its field, or if it needs a timeline and no log has one.
GateTests test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::Findings& found);
GateTests test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::compare::Comparison& comparison);
GateTests test_conditions(const std::vector<analyzers::gates::Condition>& conditions,
                          const analyzers::Study& study);

/// Writes the lines of conditions that are not kept to stderr. Returns the exit code.
int close_gate(const GateTests& tests);

}  // namespace halfscope::cli::gates
