// SPDX-License-Identifier: Apache-2.0
#include "analyzers/step_facts.hpp"

#include <algorithm>
#include <cmath>

namespace halfscope::analyzers {

using log::Role;

LogScalars::LogScalars(const Analysis& analysis, const std::string& log) {
  for (const auto& [of, scalars] : analysis.scalars) {
    if (of == log) steps_[scalars.step] = &scalars;
  }
}

const log::StepScalars* LogScalars::at(std::int64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : found->second;
}

std::optional<double> LogScalars::loss_scale(std::int64_t step) const {
  const log::StepScalars* scalars = at(step);
  const bool usable =
      scalars != nullptr && scalars->loss_scale && usable_scale(*scalars->loss_scale);
  return usable ? scalars->loss_scale : std::nullopt;
}

bool computed_narrow(const TensorFindings& tensor) {
  if (!tensor.source_dtype && !tensor.computed_dtype) return true;  // it may be
  return tensor.computed_in_fp16() ||
         (tensor.source_dtype && format_of(*tensor.source_dtype).emax <= kBinary16.emax) ||
         (tensor.computed_dtype && format_of(*tensor.computed_dtype).emax <= kBinary16.emax);
}

void ComputedFormats::add(const TensorFindings& tensor) {
  const bool gradient = is_gradient(tensor.role);
  const bool computes = gradient || tensor.role == Role::weight || tensor.role == Role::activation;
  if (!computes) return;
  const bool narrow = computed_narrow(tensor);
  narrow_ = narrow_ || narrow;
  narrow_gradient_ = narrow_gradient_ || (gradient && narrow);
  activation_grads_ = activation_grads_ || tensor.role == Role::activation_grad;
}

std::optional<double> computed_scale(const TensorFindings& tensor, const StepFindings& step,
                                     const LogScalars& scalars, WithoutScalars without) {
  if (step.scale != 1.0) return step.scale;
  if (!tensor.counted || before_scaling(tensor, step)) return 1.0;
  if (const auto known = scalars.loss_scale(step.step)) return known;
  const bool as_computed = step.fits_as_is || step.counts.finite_nonzero.high == 0;
  const bool told = !scalars.empty() || without == WithoutScalars::as_recorded;
  return told && as_computed ? std::optional(1.0) : std::nullopt;
}

bool overflows(const StepFindings& step, Format format, double loss_scale) {
  return step.largest && *step.largest >= boundaries(format, loss_scale, step.scale).overflow;
}

// Powers of two move exponents only, so one comparison of fractions decides.
int highest_safe_log2(Magnitude recorded, double recorded_scale, Format format) {
  const Magnitude overflow = boundaries(format, 1.0, recorded_scale).overflow;
  const int reaches = recorded.fraction >= overflow.fraction ? 1 : 0;
  return overflow.exponent - recorded.exponent - reaches;
}

const StepFindings* find_step(const TensorFindings& tensor, std::int64_t step) {
  const auto at = std::lower_bound(
      tensor.per_step.begin(), tensor.per_step.end(), step,
      [](const StepFindings& found, std::int64_t wanted) { return found.step < wanted; });
  return at == tensor.per_step.end() || at->step != step ? nullptr : &*at;
}

}  // namespace halfscope::analyzers
