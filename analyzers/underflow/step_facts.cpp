// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/step_facts.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzers/frames/microbatches.hpp"

namespace halfscope::analyzers::underflow {

using log::Role;

std::optional<double> manifest_scale(const std::optional<log::Manifest>& manifest) {
  if (!manifest || !manifest->about->contains("loss_scaling")) return std::nullopt;
  const auto& policy = (*manifest->about)["loss_scaling"];
  if (!policy.is_object()) return std::nullopt;
  const auto name = policy.find("policy"), scale = policy.find("scale");
  if (name == policy.end() || !name->is_string()) return std::nullopt;
  if (*name == "none") return 1.0;
  if (*name != "static" || scale == policy.end() || !scale->is_number()) return std::nullopt;
  return scale->get<double>();
}

LogScalars::LogScalars(const LogFindings& log) : of_manifest_(manifest_scale(log.manifest)) {
  steps_.reserve(log.scalars.size());
  for (const log::StepScalars& scalars : log.scalars) steps_.push_back(&scalars);
  const auto is_out_of_order = [](const auto* a, const auto* b) { return a->step >= b->step; };
  if (std::ranges::adjacent_find(steps_, is_out_of_order) != steps_.end()) {
    std::ranges::stable_sort(steps_, {}, &log::StepScalars::step);
    // If a step is recorded more than once, the last record is used.
    std::ranges::reverse(steps_);
    const auto is_again = [](const auto* a, const auto* b) { return a->step == b->step; };
    steps_.erase(std::unique(steps_.begin(), steps_.end(), is_again), steps_.end());
    std::ranges::reverse(steps_);
  }
  find_parts(log);
}

void LogScalars::find_parts(const LogFindings& log) {
  frames::SumFormat sums;
  for (const TensorFindings& t : log.tensors) {
    if (t.role == Role::weight_grad) sums.add(t.source_dtype);
  }
  // Without peaks, for example if tensors are selected by name, only the sums are used.
  if (!sums.is_fp32() || log.peaks.empty()) return;
  const bool scaled = log.manifest && log.manifest->gradients == log::ScaleState::scaled;
  for (const log::StepScalars* const scalars : steps_) {
    const std::int64_t step = scalars->step;
    const std::optional<double> part = frames::largest_part(*scalars);
    const double scale = frames::microbatch_scale(*scalars, scaled);
    if (!part || !std::isfinite(*part) || *part == 0 || !frames::usable_scale(scale)) continue;
    parts_[step] = *part / scale;
    const double sum = scalars->max_abs_weight_grad.value_or(0);
    if (std::isfinite(sum) && sum > parts_[step]) sums_[step] = sum;
  }
}

double LogScalars::in_fp16(Role role, std::int64_t step, double max_abs) const {
  const auto part = role == Role::weight_grad ? parts_.find(step) : parts_.end();
  return part == parts_.end() ? max_abs : std::min(max_abs, part->second);
}

const log::StepScalars* LogScalars::at(std::int64_t step) const {
  const auto found = std::ranges::lower_bound(steps_, step, {}, &log::StepScalars::step);
  return found == steps_.end() || (*found)->step != step ? nullptr : *found;
}

std::optional<double> LogScalars::loss_scale(std::int64_t step) const {
  const log::StepScalars* scalars = at(step);
  const bool usable =
      scalars != nullptr && scalars->loss_scale && frames::usable_scale(*scalars->loss_scale);
  if (usable) return scalars->loss_scale;
  return of_manifest_ && frames::usable_scale(*of_manifest_) ? of_manifest_ : std::nullopt;
}

bool may_have_fp16_range(const TensorFindings& tensor) {
  if (!tensor.source_dtype && !tensor.computed_dtype) return true;  // the log does not say
  return tensor.computed_in_fp16() ||
         (tensor.source_dtype && format_of(*tensor.source_dtype).emax <= kBinary16.emax) ||
         (tensor.computed_dtype && format_of(*tensor.computed_dtype).emax <= kBinary16.emax);
}

void ComputedFormats::add(const TensorFindings& tensor) {
  const bool gradient = is_gradient(tensor.role);
  const bool computes = gradient || tensor.role == Role::weight || tensor.role == Role::activation;
  if (!computes) return;
  const bool narrow = may_have_fp16_range(tensor);
  narrow_ = narrow_ || narrow;
  narrow_gradient_ = narrow_gradient_ || (gradient && narrow);
  activation_grads_ = activation_grads_ || tensor.role == Role::activation_grad;
}

bool as_computed(const StepFindings& step) {
  return step.scale != 1.0 || step.fits_as_is || step.counts.finite_nonzero.high == 0;
}

std::optional<double> computed_scale(const TensorFindings& tensor, const StepFindings& step,
                                     const LogScalars& scalars, WithoutScalars without) {
  if (step.scale != 1.0) return step.scale;
  if (!tensor.loss_scaled || before_scaling(tensor, step)) return 1.0;
  if (const auto known = scalars.loss_scale(step.step)) return known;
  const bool told = !scalars.empty() || without == WithoutScalars::as_recorded;
  return told && as_computed(step) ? std::optional(1.0) : std::nullopt;
}

bool overflows(const StepFindings& step, Format format, double loss_scale) {
  return step.largest && *step.largest >= boundaries(format, loss_scale, step.scale).overflow;
}

// Binary64 need not hold the magnitude itself.
double StepMagnitude::log2() const {
  return recorded.exponent + std::log2(to_double({0, recorded.fraction})) - std::log2(scale);
}

// A power of two changes only the exponent, so one comparison of fractions decides.
int StepMagnitude::highest_safe_log2(Format format) const {
  const Magnitude overflow = boundaries(format, 1.0, scale).overflow;
  const int reaches = recorded.fraction >= overflow.fraction ? 1 : 0;
  return overflow.exponent - recorded.exponent - reaches;
}

std::optional<StepMagnitude> finite_magnitude(const StepFindings& step) {
  if (!step.largest) return std::nullopt;
  return StepMagnitude{*step.largest, step.scale};
}

StepMagnitude infinite_magnitude(double computed_scale) {
  return {boundaries(kBinary16).overflow, computed_scale, true};
}

std::optional<StepMagnitude> infinite_magnitude(const TensorFindings& tensor,
                                                const StepFindings& step,
                                                const LogScalars& scalars) {
  const auto scale = computed_scale(tensor, step, scalars, WithoutScalars::as_recorded);
  return scale ? std::optional(infinite_magnitude(*scale)) : std::nullopt;
}

}  // namespace halfscope::analyzers::underflow
