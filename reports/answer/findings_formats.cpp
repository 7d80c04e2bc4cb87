// SPDX-License-Identifier: Apache-2.0
// Findings on formats that the run could use.
#include <fmt/format.h>

#include <utility>

#include "reports/answer/findings_list.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/formats_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;

void formats(const Study& study, List& to) {
  const FitSums sums = fit_sums(study.analysis);
  if (sums.tensors == 0) return;
  if (sums.wider_than_16 > 0) {
    to.push_back({Severity::warning,
                  fmt::format("{} of {} fit no 16-bit format, whatever the scale.",
                              count_text(sums.wider_than_16), plural(sums.tensors, "tensor")),
                  "Keep them in FP32.", Evidence::formats});
  }
}

void delayed_scaling(const Study& study, List& to) {
  for (const auto& history : study.amax_histories) {
    for (Finding& finding : delayed_findings(history)) {
      if (study.analysis.logs.size() > 1) finding.title = code(history.log) + ": " + finding.title;
      to.push_back(std::move(finding));
    }
  }
}

/// MXFP8's recipe uses E4M3 for all tensors, so only a preference for E5M2 needs an action.
void mx_gradients(const Study& study, List& to) {
  const auto& mx = study.mx_gradients;
  if (!mx || mx->e5m2_better <= mx->e4m3_better) return;
  to.push_back({Severity::note, mx_gradients_text(*mx),
                fmt::format("Set {}, which has E5M2 for gradients.",
                            code("MXFP8BlockScaling(fp8_format=Format.HYBRID)")),
                Evidence::formats});
}

}  // namespace halfscope::reports::answer::found
