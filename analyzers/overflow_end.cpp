// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow_end.hpp"

#include <algorithm>
#include <limits>

namespace halfscope::analyzers {
namespace {

std::int64_t last_step(const Analysis& analysis, const std::string& log) {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const TensorFindings& tensor : analysis.tensors) {
    if (tensor.log != log) continue;
    for (const StepFindings& step : tensor.per_step) last = std::max(last, step.step);
  }
  for (const auto& [of, scalars] : analysis.scalars) {
    if (of == log) last = std::max(last, scalars.step);
  }
  return last;
}

}  // namespace

const OverflowEvent* lasting(const Analysis& analysis, const OverflowFindings& overflow) {
  const auto lasts = [&](const OverflowEvent& event) {
    const bool no_cure = event.cause == Cause::nan_in_model || event.cause == Cause::at_scale_1;
    return no_cure && !event.what_if && event.last_step > event.step &&
           event.last_step == last_step(analysis, event.log);
  };
  const auto found = std::ranges::find_if(overflow.events, lasts);
  return found == overflow.events.end() ? nullptr : &*found;
}

}  // namespace halfscope::analyzers
