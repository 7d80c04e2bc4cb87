// SPDX-License-Identifier: Apache-2.0
// What is shown of two runs, as data: terminal and page lay it out. Text has marks (marks.hpp).
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

struct ComparisonAnswer {
  std::string a, b;                  ///< the logs
  std::string counted_for;           ///< format and loss scale of all counts
  std::string verdict;               ///< whether a run is broken, or B is better or worse
  std::vector<std::string> reasons;  ///< what the verdict stands on
  Table facts;                       ///< rows of a name, A's value and B's
  std::vector<std::string> values;   ///< what both runs have, and what became of it in B
  std::string losses;                ///< how long the losses stay together; may be empty
  Section sums;                      ///< whether they differ by rounding; empty: not asked
  std::vector<Section> operations;   ///< against their emulation, a section a run that has them
  Table tensors;                     ///< worst first, in the order of the comparison
};

ComparisonAnswer comparison_answer(const analyzers::compare::Comparison& comparison);

/// What is said of one tensor. Plain text.
std::string tensor_facts(const analyzers::compare::ComparedTensor& tensor);

}  // namespace halfscope::reports::answer
