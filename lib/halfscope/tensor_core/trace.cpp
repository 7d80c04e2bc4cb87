// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/trace.hpp"

#include <algorithm>

namespace halfscope::tensor_core {
namespace {

detail::Special special_of(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                           const ScaledOperand& b, int count, std::uint32_t c) {
  detail::Special special;
  special.add_c(format_of(d), c);
  for (int i = 0; i < count; ++i) {
    special.add_product(a.format, a.elements[i], b.format, b.elements[i]);
    if (unit.block == 0) continue;
    special.nan |= detail::is_nan_scale(unit.scale, a.scales[i / unit.block]) ||
                   detail::is_nan_scale(unit.scale, b.scales[i / unit.block]);
  }
  return special;
}

/// Sets everything but `first`.
void trace_step(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                const ScaledOperand& b, TracedStep& step) {
  const auto special = special_of(unit, d, a, b, step.count, step.c);
  step.special = special.nan || special.plus || special.minus;
  if (step.special) {
    step.d = special.result(format_of(d));
    return;
  }
  const auto addend = [&](int i) {
    return unit.block == 0
               ? detail::product(unit.unit, a.format, a.elements[i], b.format, b.elements[i])
               : detail::scaled_group(unit, a, b, step.count, i);
  };
  const int addends = (step.count + unit.group - 1) / unit.group;
  step.start.exact = detail::accumulated(unit.unit, d, step.c);
  step.grid = detail::grid_of(unit.unit, d, step.start.exact, addends, addend);
  step.sum = step.start.kept = detail::on_grid(step.start.exact, step.grid);
  for (int i = 0; i < addends; ++i) {
    step.terms.push_back({addend(i), detail::on_grid(addend(i), step.grid)});
    step.sum += step.terms.back().kept;
  }
  step.d = detail::rounded(unit.unit, d, step.sum, step.grid);
}

}  // namespace

std::vector<TracedStep> trace(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                              const ScaledOperand& b, int count, std::uint32_t c) {
  std::vector<TracedStep> steps;
  const int length = unit.unit.length;
  for (int first = 0; first < count; first += length) {
    TracedStep& step = steps.emplace_back();
    step.first = first;
    step.count = std::min(length, count - first);
    step.c = c;
    const auto from = [&](const ScaledOperand& x) {
      return ScaledOperand{x.format, x.elements + first,
                           unit.block == 0 ? nullptr : x.scales + first / unit.block};
    };
    trace_step(unit, d, from(a), from(b), step);
    c = step.d;
  }
  return steps;
}

}  // namespace halfscope::tensor_core
