// SPDX-License-Identifier: Apache-2.0
#include "analyzers/step_series_step.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace halfscope::analyzers {
namespace {

using log::Role;
using log::StepScalars;

std::optional<double> find(const StepScalars& scalars, const std::string& tag) {
  const auto at = scalars.more.find(tag);
  return at == scalars.more.end() ? std::nullopt : std::optional(at->second);
}

/// A scale that the scalars may say: what is below 0 is none.
std::optional<double> scale_in(std::optional<double> scale) {
  return scale.value_or(-1) >= 0 ? scale : std::nullopt;
}

}  // namespace

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void SeriesStep::add_table(Role role) {
  if (role == Role::weight_grad) ++tables.weights;
  if (role == Role::activation_grad) ++tables.activations;
}

void SeriesStep::add(const StepScalars& scalars, std::optional<double> microbatch_scale,
                     RecordedScalars& recorded) {
  if (const auto own = scale_in(scalars.loss_scale)) {
    if (!loss_scale) loss_scale = own;
    most_scale = std::max(most_scale, *own);
  }
  if (scalars.found_inf) found_inf = found_inf.value_or(false) || *scalars.found_inf;
  if (const auto& weights = scalars.max_abs_weight_grad) {
    see(std::abs(*weights));
    ++told.weights;
    recorded.max_abs.weights = true;
  }
  if (const auto& activations = scalars.max_abs_activation_grad) {
    see(std::abs(*activations));
    ++told.activations;
    recorded.max_abs.activations = true;
  }
  add_microbatches(scalars, microbatch_scale);
  recorded.microbatches.weights |= microbatches.weights;
  recorded.microbatches.activations |= microbatches.activations;
  add_attempts(scalars, recorded);
}

void SeriesStep::add_microbatches(const StepScalars& scalars, std::optional<double> scale) {
  for (const auto& [tag, value] : scalars.more) {
    const bool weights = tag.starts_with("max_abs/weight_grad/microbatch-");
    if (!weights && !tag.starts_with("max_abs/activation_grad/microbatch-")) continue;
    (weights ? microbatches.weights : microbatches.activations) = true;
    if (!std::isfinite(value)) {
      see(value);
    } else if (scale) {
      see(std::abs(value) / *scale);
    } else {
      scaled_microbatches = std::max(scaled_microbatches.value_or(0), std::abs(value));
    }
  }
}

void SeriesStep::unscale_microbatches(std::optional<double> scale) {
  if (!scaled_microbatches || !usable_scale(scale.value_or(0))) return;
  see(*scaled_microbatches / *scale);
  scaled_microbatches.reset();
}

bool SeriesStep::lacks_microbatches(const RecordedScalars& recorded) const {
  if (!microbatches.weights && !microbatches.activations) return false;
  return (recorded.microbatches.weights && !microbatches.weights) ||
         (recorded.microbatches.activations && !microbatches.activations);
}

/// Tags count attempts from 0.
void SeriesStep::add_attempts(const StepScalars& scalars, RecordedScalars& recorded) {
  for (std::size_t i = 0;; ++i) {
    const std::string end = "/attempt-" + std::to_string(i);
    const auto weights = find(scalars, "max_abs/weight_grad" + end);
    const auto activations = find(scalars, "max_abs/activation_grad" + end);
    if (!weights && !activations) return;
    if (attempts.size() == i) attempts.emplace_back();
    SeriesAttempt& attempt = attempts[i];
    if (!attempt.scale) attempt.scale = scale_in(find(scalars, "loss_scale" + end));
    attempt.max_abs = larger(std::abs(weights.value_or(0)), attempt.max_abs);
    attempt.max_abs = larger(std::abs(activations.value_or(0)), attempt.max_abs);
    attempt.told.weights += weights.has_value();
    attempt.told.activations += activations.has_value();
    recorded.max_abs.weights |= weights.has_value();
    recorded.max_abs.activations |= activations.has_value();
  }
}

}  // namespace halfscope::analyzers
