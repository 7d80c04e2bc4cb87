// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/step_maxima.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "analyzers/recommend/peaks.hpp"

namespace halfscope::analyzers::recommend {

namespace {

/// What is known of one step.
struct Step {
  std::optional<int> highest_log2;  ///< empty: no magnitude
  bool censored = false;            ///< it may have been larger
  bool bounded = false;             ///< an infinity tells one
  bool broken = false;              ///< an infinity or NaN tells none
};
using Steps = std::map<std::int64_t, Step>;

/// Infinities that the log left out may have been there.
void censor_unrecorded(const underflow::TensorFindings& t, const underflow::LogScalars& scalars,
                       Steps& steps) {
  for (const underflow::StepFindings& found : t.per_step) {
    if (found.counts.nonfinite_known) continue;
    const log::StepScalars* told = scalars.at(found.step);
    const bool sound = told != nullptr && told->found_inf == false;
    if (!sound) steps[found.step].censored = true;
  }
}

Steps steps_of(const LogPeaks& peaks, Format format) {
  Steps steps;
  PeakVisitor visit;
  visit.peak = [&](const Peak& peak) {
    Step& step = steps[peak.limit.step];
    const int highest = peak.magnitude.highest_safe_log2(format);
    step.highest_log2 = std::min(step.highest_log2.value_or(highest), highest);
    step.censored |= peak.magnitude.censored;
    step.bounded |= peak.magnitude.censored;
  };
  visit.nonfinite = [&](std::int64_t step, bool) { steps[step].broken = true; };
  bool any = false;
  for (const underflow::TensorFindings& t : peaks.log().tensors) {
    if (!t.loss_scaled) continue;
    any = true;
    peaks.of_tensor(t, visit);
    censor_unrecorded(t, peaks.scalars(), steps);
  }
  if (any) peaks.of_scalars(visit);
  return steps;
}

}  // namespace

std::vector<LogMaxima> step_maxima(const Basis& basis) {
  std::vector<LogMaxima> all;
  const AllPeaks peaks(basis);
  for (const underflow::LogFindings& log : basis.analysis.logs) {
    LogMaxima maxima{log.name, {}, {}};
    for (const auto& [number, step] : steps_of(peaks.of(log.name), basis.analysis.target.format)) {
      if (step.broken && !step.bounded) {
        maxima.left_out.push_back(number);
      } else if (step.highest_log2) {
        maxima.steps.push_back({number, *step.highest_log2, step.censored || log.clipped});
      }
    }
    if (!maxima.steps.empty()) all.push_back(std::move(maxima));
  }
  return all;
}

}  // namespace halfscope::analyzers::recommend
