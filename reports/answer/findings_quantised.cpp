// SPDX-License-Identifier: Apache-2.0
// Findings on values that became zero or were clipped in FP8 or FP4.
#include <utility>

#include "reports/answer/findings_list.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/quantised_words.hpp"

namespace halfscope::reports::answer::found {

void quantised(const analyzers::Study& study, List& to) {
  for (const analyzers::formats::QuantisedLog& log : study.quantised) {
    const auto tell = [&](Finding finding) {
      if (study.analysis.logs.size() > 1) finding.title = code(log.log) + ": " + finding.title;
      to.push_back(std::move(finding));
    };
    tell(quantised_finding(log));
    if (auto clipped = clipped_finding(log)) tell(std::move(*clipped));
  }
}

}  // namespace halfscope::reports::answer::found
