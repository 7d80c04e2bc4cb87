// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/peaks.hpp"

#include <cmath>
#include <optional>
#include <string>

namespace halfscope::analyzers::recommend {

using underflow::LogFindings;
using underflow::LogScalars;
using underflow::StepFindings;
using underflow::StepMagnitude;
using underflow::TensorFindings;

namespace {

/// Returns the peak of the largest finite magnitude of a step; empty if there is none.
std::optional<Peak> finite_peak(const TensorFindings& tensor, const StepFindings& step) {
  const auto magnitude = underflow::finite_magnitude(step);
  if (!magnitude) return std::nullopt;
  Peak peak{*magnitude, {*tensor.log, tensor.name, step.step, *step.max_abs}};
  // A bucket that contains zero, or is wider than a factor of two, only bounds the magnitude.
  const bool nothing_sure = step.counts.finite_nonzero.low == 0;
  peak.limit.bounded =
      nothing_sure || step.max_abs_at_least.value_or(*step.max_abs) * 2 < *step.max_abs;
  return peak;
}

/// Returns the peak that FP16 held: with microbatches, the largest part of the sum. The scalars do
/// not name the part's tensor, so its limit names the role.
Peak in_fp16(const Peak& peak, log::Role role, const LogScalars& scalars) {
  const double part = scalars.in_fp16(role, peak.limit.step, peak.limit.max_abs);
  if (part == peak.limit.max_abs) return peak;
  const std::string name(log::name_of(role));
  return {{magnitude_of(part)}, {peak.limit.log, name, peak.limit.step, part, false, true}};
}

}  // namespace

LogPeaks::LogPeaks(const Basis& basis, const LogFindings& log)
    : basis_(basis), log_(log), scalars_(log) {
  for (const TensorFindings& t : log.tensors) {
    if (t.computed_in_fp16()) in_fp16_.insert(t.role);
  }
}

void LogPeaks::of_tensor(const TensorFindings& tensor, const PeakVisitor& visit) const {
  for (const StepFindings& step : tensor.per_step) {
    if (const auto peak = finite_peak(tensor, step)) {
      visit.peak(in_fp16(*peak, tensor.role, scalars_));
    }
    if (!underflow::nonfinite(step)) continue;
    const bool infinite = step.counts.inf.low != 0 && basis_.overflow.bounds(tensor, step);
    const bool bounds = infinite || basis_.overflow.nan_bounds(tensor, step);
    const auto least = bounds ? underflow::infinite_magnitude(tensor, step, scalars_)
                              : std::optional<StepMagnitude>();
    if (!least) {
      visit.nonfinite(step.step, !bounds);
      continue;
    }
    Peak peak{*least, {*tensor.log, tensor.name, step.step, least->unscaled(), true}};
    if (!infinite) peak.limit.nan_at = least->scale;
    visit.peak(peak);
  }
}

void LogPeaks::of_scalars(const PeakVisitor& visit) const {
  for (const frames::StepPeak& step : log_.peaks) {
    const bool of_role = step.tensor.empty();
    if (!of_role && !is_gradient(step.role)) continue;
    const std::string name = of_role ? std::string(log::name_of(step.role)) : step.tensor;
    Peak peak{{}, {log_.name, name, step.step, step.max_abs, false, of_role}};
    if (std::isfinite(step.max_abs)) {
      peak.magnitude.recorded = magnitude_of(step.max_abs);
      if (step.max_abs > 0) visit.peak(peak);
      continue;
    }
    const bool in_fp16 = in_fp16_.contains(step.role), nan = std::isnan(step.max_abs);
    const bool bounds = basis_.overflow.bounds(log_.name, step.role, step.step, in_fp16, nan);
    const auto scale = bounds ? scalars_.loss_scale(step.step) : std::optional<double>();
    if (!scale) {
      visit.nonfinite(step.step, !bounds);
      continue;
    }
    peak.magnitude = underflow::infinite_magnitude(*scale);
    peak.limit.max_abs = peak.magnitude.unscaled();
    peak.limit.censored = true;
    if (nan) peak.limit.nan_at = *scale;
    visit.peak(peak);
  }
}

AllPeaks::AllPeaks(const Basis& basis) : basis_(basis) {
  for (const LogFindings& log : basis.analysis.logs) logs_.try_emplace(log.name, basis, log);
}

}  // namespace halfscope::analyzers::recommend
