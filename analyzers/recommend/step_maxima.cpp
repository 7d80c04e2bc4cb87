// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/step_maxima.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "analyzers/recommend/peaks.hpp"

namespace halfscope::analyzers::recommend {

namespace {

/// What is known of one step.
struct Step {
  int highest_log2 = std::numeric_limits<int>::max();
  bool any = false;       ///< a magnitude
  bool censored = false;  ///< it may have been larger
  bool bounded = false;   ///< an infinity tells one
  bool broken = false;    ///< an infinity or NaN tells none
};
using Steps = std::map<std::int64_t, Step>;

/// Infinities that the log left out may have been there.
void tell_left_out(const underflow::TensorFindings& t, const underflow::LogScalars& scalars,
                   Steps& steps) {
  for (const underflow::StepFindings& found : t.per_step) {
    if (found.counts.nonfinite_known) continue;
    const log::StepScalars* told = scalars.at(found.step);
    const bool sound = told != nullptr && told->found_inf == false;
    if (!sound) steps[found.step].censored = true;
  }
}

Steps steps_of(const Basis& basis, const underflow::LogFindings& log) {
  Steps steps;
  PeakVisitor visit;
  visit.peak = [&](const Peak& peak) {
    Step& step = steps[peak.limit.step];
    const int highest = peak.magnitude.highest_safe_log2(basis.analysis.target.format);
    step.highest_log2 = std::min(step.highest_log2, highest);
    step.any = true;
    step.censored |= peak.magnitude.censored;
    step.bounded |= peak.magnitude.censored;
  };
  visit.nonfinite = [&](std::int64_t step, bool) { steps[step].broken = true; };
  const LogPeaks peaks(basis, log);
  bool any = false;
  for (const underflow::TensorFindings& t : log.tensors) {
    if (!t.counted) continue;
    any = true;
    peaks.of_tensor(t, visit);
    tell_left_out(t, peaks.scalars(), steps);
  }
  if (any) peaks.of_scalars(visit);
  return steps;
}

}  // namespace

std::vector<LogMaxima> step_maxima(const Basis& basis) {
  std::vector<LogMaxima> all;
  for (const underflow::LogFindings& log : basis.analysis.logs) {
    LogMaxima maxima{log.name, {}, {}};
    for (const auto& [number, step] : steps_of(basis, log)) {
      if (step.broken && !step.bounded) {
        maxima.left_out.push_back(number);
      } else if (step.any) {
        maxima.steps.push_back({number, step.highest_log2, step.censored || log.clipped});
      }
    }
    if (!maxima.steps.empty()) all.push_back(std::move(maxima));
  }
  return all;
}

}  // namespace halfscope::analyzers::recommend
