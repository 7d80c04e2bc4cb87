// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/timeline_facts.hpp"

#include <algorithm>
#include <map>
#include <ranges>

namespace halfscope::analyzers::scale_history {
namespace {

/// The largest gradient of each step, taken as unscaled: the least that it can
/// be.
std::map<std::int64_t, double> largest_of(const underflow::LogFindings& log) {
  std::map<std::int64_t, double> largest;
  for (const underflow::TensorFindings& tensor : log.tensors) {
    if (!tensor.loss_scaled) continue;
    for (const underflow::StepFindings& step : tensor.per_step) {
      if (step.scale != 1 || step.counts.finite_nonzero.low == 0) continue;
      double& kept = largest[step.step];
      kept = std::max(kept, step.max_abs_at_least.value_or(step.max_abs.value_or(0)));
    }
  }
  return largest;
}

}  // namespace

std::optional<CarriedScale> carried_scale(const underflow::LogFindings& log) {
  constexpr std::uint64_t kFewestSteps = 2, kOneOf = 10;
  if (log.kinds.empty()) return std::nullopt;
  const double overflow = to_double(boundaries(kBinary16).overflow);
  CarriedScale found{log.name};
  for (const frames::LogKind& kind : log.kinds) {
    if (found.tag.empty()) found.tag = kind.scale_tag;
  }
  const auto largest = largest_of(log);
  std::optional<double> next;  // the next step's scale; without one the step may be skipped
  for (const log::StepScalars& scalars : log.scalars | std::views::reverse) {
    if (!scalars.loss_scale || !frames::usable_scale(*scalars.loss_scale)) continue;
    const double scale = *scalars.loss_scale;
    const bool skipped = scalars.found_inf.value_or(!next || *next < scale);
    next = scale;
    const auto at = largest.find(scalars.step);
    if (at == largest.end()) continue;
    ++found.of;
    if (at->second * scale >= overflow && !skipped) ++found.steps;
  }
  const bool many = found.steps >= kFewestSteps && found.steps * kOneOf >= found.of;
  return many ? std::optional(found) : std::nullopt;
}

}  // namespace halfscope::analyzers::scale_history
