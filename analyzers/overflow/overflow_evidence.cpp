// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope::analyzers::overflow {

using underflow::Phase;
using underflow::TensorFindings;

namespace {

using log::Role;
using log::StepScalars;

/// Returns the step's largest gradient by its scalars; empty if they have none.
std::optional<double> scalar_peak(const LogView& view, const StepScalars& s) {
  if (!s.max_abs_weight_grad && !s.max_abs_activation_grad) return std::nullopt;
  const double a =
      view.scalars.in_fp16(Role::weight_grad, s.step, s.max_abs_weight_grad.value_or(0.0));
  const double b = s.max_abs_activation_grad.value_or(0.0);
  // std::max would ignore a NaN in its second argument.
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

std::optional<double> loss_of(const LogView& view, std::int64_t step) {
  const StepScalars* scalars = view.scalars.at(step);
  return scalars == nullptr ? std::nullopt : scalars->loss;
}

/// Returns a step's largest unscaled magnitude over its finite gradients and its scalars.
std::optional<double> step_peak(const LogView& view, std::int64_t at) {
  double peak = 0;
  for (const TensorFindings& tensor : view.log.tensors) {
    // Gradients that a 16-bit run keeps in FP32 do not overflow when others do.
    const bool bounds =
        underflow::may_have_fp16_range(tensor) || !view.formats.any_narrow_gradient();
    if (underflow::phase_of(tensor.role) != Phase::backward || !bounds) continue;
    const auto step = tensor.per_step.find(at);
    if (!step || !step->max_abs) continue;
    peak = std::max(peak, view.scalars.in_fp16(tensor.role, at, *step->max_abs));
  }
  if (const StepScalars* scalars = view.scalars.at(at)) {
    const double scalar = scalar_peak(view, *scalars).value_or(0.0);
    if (std::isfinite(scalar)) peak = std::max(peak, scalar);
  }
  return peak > 0 ? std::optional(peak) : std::nullopt;
}

}  // namespace

bool has_role(const LogView& view, Role role, std::int64_t step) {
  return std::ranges::any_of(view.log.tensors, [&](const TensorFindings& tensor) {
    return tensor.role == role && tensor.per_step.contains(step);
  });
}

bool forward_known(const LogView& view, std::int64_t step) {
  return loss_of(view, step) || has_role(view, Role::loss, step) ||
         has_role(view, Role::activation, step);
}

std::string forward_text(const LogView& view, std::int64_t step) {
  if (const auto loss = loss_of(view, step)) return fmt::format("the loss ({:.4g})", *loss);
  return has_role(view, Role::activation, step) ? "every recorded activation" : "the loss";
}

bool any_infinite_gradient(const LogView& view, std::int64_t step) {
  const StepScalars* scalars = view.scalars.at(step);
  const auto infinite = [](std::optional<double> x) { return x && std::isinf(*x); };
  if (scalars != nullptr &&
      (infinite(scalars->max_abs_weight_grad) || infinite(scalars->max_abs_activation_grad))) {
    return true;
  }
  return std::ranges::any_of(view.log.tensors, [&](const TensorFindings& tensor) {
    if (underflow::phase_of(tensor.role) != Phase::backward ||
        !underflow::may_have_fp16_range(tensor)) {
      return false;
    }
    const auto found = tensor.per_step.find(step);
    return found && found->counts.inf.low != 0;
  });
}

std::optional<ScaleSpan> scale_span(const LogView& view, const Run& run) {
  std::optional<ScaleSpan> span;
  for (const auto& [at, mark] : run.steps) {
    if (underflow::phase_of(mark.role) != Phase::backward) break;
    std::optional<double> scale = view.scalars.loss_scale(at);
    if (mark.tensor) {
      const TensorFindings& tensor = view.tensor(*mark.tensor);
      scale = underflow::computed_scale(tensor, *tensor.per_step.find(at), view.scalars);
    }
    if (!scale && !span) return std::nullopt;
    if (!scale) continue;
    if (!span) span = ScaleSpan{*scale, *scale, *scale, at};
    span->most = std::max(span->most, *scale);
    if (*scale < span->least) {
      span->least = *scale;
      span->least_at = at;
    }
  }
  return span;
}

bool is_growth_probe(const LogView& view, const Run& run) {
  const std::optional<double> scale = view.scalars.loss_scale(run.first_step());
  const auto skipped_there = [&](const auto& step) {
    const log::StepScalars* scalars = view.scalars.at(step.first);
    return scalars != nullptr && scalars->found_inf == true && scalars->loss_scale == scale;
  };
  if (!scale || !std::ranges::all_of(run.steps, skipped_there)) return false;
  const auto& steps = view.scalars.steps();
  auto before = std::ranges::lower_bound(steps, run.first_step(), {}, &log::StepScalars::step);
  while (before != steps.begin()) {
    const std::optional<double>& earlier = (*--before)->loss_scale;
    if (earlier && earlier != scale) return *earlier < *scale;
  }
  return false;
}

Neighbours neighbours(const LogView& view, const Run& run) {
  constexpr std::ptrdiff_t kEach = 3;
  const std::vector<std::int64_t>& steps = view.clean_steps;
  const auto before = std::lower_bound(steps.begin(), steps.end(), run.first_step());
  const auto after = std::upper_bound(steps.begin(), steps.end(), run.last_step());
  Neighbours near;
  near.steps.assign(before - std::min(kEach, before - steps.begin()), before);
  near.steps.insert(near.steps.end(), after, after + std::min(kEach, steps.end() - after));
  for (const std::int64_t step : near.steps) {
    const std::optional<double> peak = step_peak(view, step);
    if (peak) near.largest = std::max(near.largest.value_or(0.0), *peak);
  }
  if (after != steps.end()) {
    const auto then = view.scalars.loss_scale(*after);
    const auto span = scale_span(view, run);
    near.held_at_smaller_scale = then && span && *then < span->least;
  }
  return near;
}

LargestGradient largest_gradient(const LogView& view, const Run& run) {
  const Format format = view.analysis.target.format;
  LargestGradient largest;
  largest.safe_log2 = std::numeric_limits<int>::max();
  const auto take = [&](Magnitude recorded, double scale, double unscaled, std::int64_t step) {
    largest.safe_log2 = std::min(
        largest.safe_log2, underflow::StepMagnitude{recorded, scale}.highest_safe_log2(format));
    if (unscaled > largest.unscaled) {
      largest.unscaled = unscaled;
      largest.step = step;
    }
  };
  for (const auto& [at, unused] : run.steps) {
    for (const std::size_t i : view.order().tensors()) {
      const TensorFindings& tensor = view.tensor(i);
      const auto step = tensor.per_step.find(at);
      if (!tensor.loss_scaled || !step || !step->largest) continue;
      const double held = view.scalars.in_fp16(tensor.role, at, *step->max_abs);
      const bool whole = held == *step->max_abs;
      take(whole ? *step->largest : magnitude_of(held), whole ? step->scale : 1.0, held, at);
    }
    const StepScalars* scalars = view.scalars.at(at);
    const auto peak = scalars == nullptr ? std::nullopt : scalar_peak(view, *scalars);
    if (peak && std::isfinite(*peak) && *peak > 0) take(magnitude_of(*peak), 1.0, *peak, at);
    const auto loss = scalars == nullptr ? std::nullopt : view.counted_loss(*scalars);
    if (loss && std::isfinite(*loss) && *loss != 0) {
      take(magnitude_of(std::abs(*loss)), 1.0, std::abs(*loss), at);
    }
  }
  return largest;
}

int below(double x) {
  int exponent = 0;
  const double half = std::frexp(x, &exponent);  // x = half * 2^exponent, half in [1/2, 1)
  return half == 0.5 ? exponent - 2 : exponent - 1;
}

}  // namespace halfscope::analyzers::overflow
