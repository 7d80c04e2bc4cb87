// SPDX-License-Identifier: Apache-2.0
// The parts of a Tensor Core's sum, computed by the functions of its step (mma.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/tensor_core/scaled_mma.hpp"

namespace halfscope::tensor_core {

/// One addend of a step: exact, and in units of 2^grid after the cut.
struct TracedTerm {
  detail::Term exact;
  std::int64_t kept;
};

/// One step. If an operand is NaN or infinite, only `count` and `d` are set.
struct TracedStep {
  int count;                           ///< products
  std::uint32_t d = 0;                 ///< the result, C of the next step
  int grid = 0;                        ///< exponent of the grid
  std::int64_t sum = 0;                ///< exact, in units of 2^grid
  std::vector<TracedTerm> terms = {};  ///< C, then the products or sums of groups of products
};

/// Returns step() or, if unit.block is not 0, scaled_step(), with its parts.
inline TracedStep traced_step(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                              const ScaledOperand& b, int count, std::uint32_t c) {
  TracedStep out{count};
  const detail::Special special = detail::special_of(unit, d, a, b, count, c);
  out.d = special.result(format_of(d));
  if (special.any()) return out;
  const auto addend = [&](int i) {
    if (unit.block != 0) return detail::scaled_group(unit, a, b, count, i);
    return detail::product(unit.unit, a.format, a.elements[i], b.format, b.elements[i]);
  };
  const int addends = (count + unit.group - 1) / unit.group;
  const detail::Term start = detail::accumulated(unit.unit, d, c);
  out.grid = detail::grid_of(unit.unit, d, start, addends, addend);
  for (int i = -1; i < addends; ++i) {
    const detail::Term term = i < 0 ? start : addend(i);
    out.terms.push_back({term, detail::on_grid(term, out.grid)});
    out.sum += out.terms.back().kept;
  }
  out.d = detail::rounded(unit.unit, d, out.sum, out.grid);
  return out;
}

}  // namespace halfscope::tensor_core
