// SPDX-License-Identifier: Apache-2.0
// The comparison of two runs as data. Terminal and page lay it out. Strings may have marks.
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

struct ComparisonAnswer {
  std::string a, b;                  ///< names of the logs
  std::string counted_for;           ///< format and loss scale of all counts
  std::string verdict;               ///< a run is broken, or B is better or worse
  std::vector<std::string> reasons;  ///< reasons for the verdict
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

}  // namespace halfscope::reports::answer
