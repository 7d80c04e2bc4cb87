// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/carried_scale.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

namespace halfscope::analyzers::scale_history {

using underflow::LogFindings;

namespace {

constexpr std::uint64_t kFewestSteps = 2, kOneOf = 10;

/// What the log tells of a step's loss scale.
struct Told {
  double scale = 1;
  std::optional<bool> found_inf;
};
using ToldByStep = std::map<std::int64_t, Told>;

ToldByStep scales_of(const LogFindings& log) {
  ToldByStep told;
  for (const log::StepScalars& scalars : log.scalars) {
    if (!scalars.loss_scale || !frames::usable_scale(*scalars.loss_scale)) continue;
    told[scalars.step] = {*scalars.loss_scale, scalars.found_inf};
  }
  return told;
}

/// The least that the largest gradient of each step can be, where it is taken as unscaled.
std::map<std::int64_t, double> largest_of(const LogFindings& log) {
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

bool was_skipped(const ToldByStep& told, ToldByStep::const_iterator at) {
  if (at->second.found_inf) return *at->second.found_inf;
  const auto next = std::next(at);
  return next == told.end() || next->second.scale < at->second.scale;  // unknown: perhaps
}

}  // namespace

std::optional<CarriedScale> carried_scale(const LogFindings& log) {
  if (log.kinds.empty()) return std::nullopt;
  const double overflow = to_double(boundaries(kBinary16).overflow);
  const ToldByStep told = scales_of(log);
  CarriedScale found{log.name};
  for (const frames::LogKind& kind : log.kinds) {
    if (found.tag.empty()) found.tag = kind.scale_tag;
  }
  for (const auto& [step, largest] : largest_of(log)) {
    const auto at = told.find(step);
    if (at == told.end()) continue;
    ++found.of;
    if (largest * at->second.scale >= overflow && !was_skipped(told, at)) ++found.steps;
  }
  const bool many = found.steps >= kFewestSteps && found.steps * kOneOf >= found.of;
  return many ? std::optional(found) : std::nullopt;
}

}  // namespace halfscope::analyzers::scale_history
