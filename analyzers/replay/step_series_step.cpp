// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_step.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "analyzers/frames/microbatches.hpp"

namespace halfscope::analyzers::replay {
namespace {

using log::Role;
using log::StepScalars;

/// Returns the attempt's number, from 0, of a tag that ends in "/attempt-N"; else empty.
std::optional<unsigned> attempt_of(std::string_view tag) {
  constexpr std::string_view kMark = "/attempt-";
  const std::size_t at = tag.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = tag.substr(at + kMark.size());
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? std::optional(number) : std::nullopt;
}

/// Returns the scale; empty if it is negative, because that is no scale.
std::optional<double> scale_in(std::optional<double> scale) {
  return scale.value_or(-1) >= 0 ? scale : std::nullopt;
}

}  // namespace

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void LargestMagnitudes::see(Role role, double magnitude) {
  if (role == Role::weight_grad) weights = weights ? larger(*weights, magnitude) : magnitude;
  if (role == Role::weight_grad && std::isfinite(magnitude)) {
    sums = std::max(sums.value_or(0), magnitude);
  } else {
    see(magnitude);
  }
}

void LargestMagnitudes::take_sums(bool parts_count) {
  if (sums && !parts_count) see(*sums);
  sums.reset();
}

void SeriesStep::take_sums(bool in_fp32, unsigned ranks) {
  const bool parts_count = in_fp32 && microbatches.weights == ranks && !scaled_microbatches;
  largest.take_sums(parts_count);
  wide.take_sums(parts_count);
  // The scalars of microbatches are recorded for the last attempt only.
  for (auto& [number, attempt] : attempts) attempt.largest.take_sums(false);
}

void SeriesStep::add_table(Role role) {
  if (role == Role::weight_grad) ++tables.weights;
  if (role == Role::activation_grad) ++tables.activations;
}

void SeriesStep::take_wide(bool any_narrow) {
  if (wide.all && (!any_narrow || !largest.all)) largest.see(*wide.all);
  if (!wide.weights || (any_narrow && largest.weights)) return;
  largest.weights = larger(*wide.weights, largest.weights.value_or(0));
}

void SeriesStep::add(const StepScalars& scalars, std::optional<double> microbatch_scale,
                     RecordedScalars& recorded) {
  if (const auto own = scale_in(scalars.loss_scale)) {
    if (!loss_scale) loss_scale = own;
    least_scale = std::min(least_scale, *own);
    most_scale = std::max(most_scale, *own);
  }
  if (scalars.found_inf) {
    found_inf = found_inf.value_or(false) || *scalars.found_inf;
    ++told_found_inf;
  }
  if (const auto& weights = scalars.max_abs_weight_grad) {
    largest.see(Role::weight_grad, std::abs(*weights));
    ++told.weights;
    recorded.max_abs.weights = true;
  }
  if (const auto& activations = scalars.max_abs_activation_grad) {
    largest.see(Role::activation_grad, std::abs(*activations));
    ++told.activations;
    recorded.max_abs.activations = true;
  }
  add_microbatches(scalars, microbatch_scale);
  recorded.microbatches.weights |= microbatches.weights != 0;
  recorded.microbatches.activations |= microbatches.activations != 0;
  add_attempts(scalars, recorded);
}

void SeriesStep::add_microbatches(const StepScalars& scalars, std::optional<double> scale) {
  OfGradients<bool> told_here;
  for (const auto& [tag, value] : scalars.more) {
    const bool weights = frames::is_microbatch(tag, Role::weight_grad);
    if (!weights && !frames::is_microbatch(tag, Role::activation_grad)) continue;
    (weights ? told_here.weights : told_here.activations) = true;
    if (!std::isfinite(value)) {
      largest.see(value);
    } else if (scale) {
      largest.see(std::abs(value) / *scale);
    } else {
      scaled_microbatches = std::max(scaled_microbatches.value_or(0), std::abs(value));
    }
  }
  microbatches.weights += told_here.weights;
  microbatches.activations += told_here.activations;
}

void SeriesStep::unscale_microbatches(std::optional<double> scale) {
  if (!scaled_microbatches || !frames::usable_scale(scale.value_or(0))) return;
  largest.see(*scaled_microbatches / *scale);
  scaled_microbatches.reset();
}

bool SeriesStep::lacks_microbatches(const RecordedScalars& recorded, unsigned ranks) const {
  const bool one = ranks == 1 && told.weights == 1 && microbatches.weights == 0;
  return (recorded.microbatches.weights && microbatches.weights != ranks && !one) ||
         (recorded.microbatches.activations && microbatches.activations != ranks &&
          told.activations != ranks);
}

void SeriesStep::add_attempts(const StepScalars& scalars, RecordedScalars& recorded) {
  for (const auto& [tag, value] : scalars.more) {
    const auto number = attempt_of(tag);
    if (!number) continue;
    const std::string end = "/attempt-" + std::to_string(*number);
    if (tag == "max_abs/weight_grad" + end) {
      SeriesAttempt& attempt = attempts[*number];
      attempt.largest.see(Role::weight_grad, std::abs(value));
      ++attempt.told.weights;
      recorded.max_abs.weights = true;
    } else if (tag == "max_abs/activation_grad" + end) {
      SeriesAttempt& attempt = attempts[*number];
      attempt.largest.see(Role::activation_grad, std::abs(value));
      ++attempt.told.activations;
      recorded.max_abs.activations = true;
    } else if (tag == "loss_scale" + end) {
      SeriesAttempt& attempt = attempts[*number];
      if (!attempt.scale) attempt.scale = scale_in(value);
    }
  }
}

}  // namespace halfscope::analyzers::replay
