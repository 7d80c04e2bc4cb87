// SPDX-License-Identifier: Apache-2.0
// The comparison of two runs as data. Terminal and page lay it out. Strings may have marks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

struct ComparisonAnswer {
  std::string a, b;                  ///< names of the logs
  std::string counted_for;           ///< format and loss scale of all counts
  std::string verdict;               ///< a run is broken, or B is better or worse
  std::vector<std::string> reasons;  ///< reasons for the verdict
  Section stored;                    ///< loss by storage as codes; empty if no run uses it
  Table facts;                       ///< rows of a name, A's value and B's value
  std::vector<std::string> values;   ///< common tensors and steps, and how values changed in B
  std::string losses;                ///< how long the losses are equal; empty without common losses
  Section sums;                      ///< verdict on rounding or a bug; empty if --sums was not used
  /// A run's operations against their emulation, one section for each run that has them.
  std::vector<Section> operations;
  Table tensors;  ///< worst first, in the order of the comparison
};

ComparisonAnswer comparison_answer(const analyzers::compare::Comparison& comparison);

/// Returns the facts about one tensor, without marks.
std::string tensor_facts(const analyzers::compare::ComparedTensor& tensor);

/// Returns a sentence: a run is broken, or B is better, worse or not different.
std::string comparison_verdict(const analyzers::compare::Comparison& comparison);

/// Returns the reasons for the verdict: overflow, zeros, updates, loss.
std::vector<std::string> comparison_reasons(const analyzers::compare::Comparison& comparison);

/// Returns the definition of "lost to zero" for these runs.
std::string lost_note(const analyzers::compare::Comparison& comparison);

/// Returns the format and loss scale of all counts, and why the format was chosen if a run decided
/// it: "In bfloat16, at loss scale 1."
std::string counted_for_text(const analyzers::compare::Comparison& comparison);

/// Returns a sentence on zeros that are most likely not underflow. Empty if there are none.
std::string far_text(const analyzers::compare::Comparison& comparison);

/// Returns a sentence that B's new zeros are underflow. Empty if the logs do not show that.
std::string happened_text(const analyzers::compare::Comparison& comparison);

/// Returns how long the losses and loss scales are equal; empty without common losses.
std::string parting_text(const analyzers::compare::Comparison& comparison);

/// Returns for each format how many results are identical; if not all are, the worst operation, how
/// far it differs, and whether rounding explains that. The table has every operation. `run`: "A" or
/// "B".
Section operations_section(const analyzers::compare::Operations& operations, std::string_view run);

/// Returns "within", "above" or "cannot tell".
std::string_view name_of(analyzers::reduction::Verdict verdict);

/// Parses "length=4096,format=fp16,magnitudes=weight_grad/magnitudes"; the tensor's name may
/// contain commas. Throws std::invalid_argument with the text found and the form expected.
analyzers::compare::OrderAsked order_called(const std::string& text);

/// Returns one sentence on all tensors.
std::string order_verdict(const analyzers::compare::Comparison& comparison);

/// Returns what tensors lost that a run stores as codes with scales. Empty if there are none.
Section stored_section(const analyzers::compare::Comparison& comparison);

/// Empty if --sums was not used.
Section order_section(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
