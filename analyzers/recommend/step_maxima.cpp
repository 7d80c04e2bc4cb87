// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/step_maxima.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "analyzers/recommend/peaks.hpp"
#include "analyzers/recommend/unread_steps.hpp"

namespace halfscope::analyzers::recommend {

namespace {

/// The evidence about one step.
struct Step {
  std::optional<int> highest_log2;  ///< empty: no magnitude is known
  bool censored = false;            ///< the magnitude may have been larger
  bool bounded = false;             ///< an infinity shows a lower bound of the magnitude
  bool broken = false;              ///< an infinity or NaN shows no magnitude
};
using Steps = std::map<std::int64_t, Step>;

/// Marks steps as censored at which infinities may be missing from the log.
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

/// Marks the steps whose gradients were not all read.
void mark_unread(const underflow::LogFindings& log, std::span<const replay::StepSeries> runs,
                 std::vector<StepMaximum>& steps) {
  const std::set<std::int64_t> unread = unread_steps(log).steps;
  const auto run = std::ranges::find(runs, log.name, &replay::StepSeries::log);
  for (StepMaximum& step : steps) {
    step.unread = unread.contains(step.step);
    if (!step.unread || run == runs.end()) continue;
    const auto at = std::ranges::lower_bound(run->steps, step.step);
    if (at == run->steps.end() || *at != step.step) continue;
    const double clean = run->seen[static_cast<std::size_t>(at - run->steps.begin())].clean_to;
    if (clean > 0) step.clean_log2 = std::ilogb(clean);
  }
}

}  // namespace

std::vector<LogMaxima> step_maxima(const Basis& basis, std::span<const replay::StepSeries> runs) {
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
    mark_unread(log, runs, maxima.steps);
    if (!maxima.steps.empty()) all.push_back(std::move(maxima));
  }
  return all;
}

}  // namespace halfscope::analyzers::recommend
