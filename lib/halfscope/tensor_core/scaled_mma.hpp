// SPDX-License-Identifier: Apache-2.0
// Steps of block formats (mxf8f6f4, mxf4, mxf4nvf4): every block of elements has a scale.
// docs/tensor-core.md, "Steps of block formats": the source, and what it leaves open.
#pragma once

#include <cstdint>

#include "halfscope/number/scale_e8m0.hpp"
#include "halfscope/tensor_core/mma.hpp"

namespace halfscope::tensor_core {

/// A or B of one output. Element i has the scale scales[i / block].
struct ScaledOperand {
  Format format;                  ///< at most 8 bits wide
  const std::uint16_t* elements;  ///< encodings of `format`
  const std::uint8_t* scales;     ///< encodings of ScaledUnit::scale
};

namespace detail {

HALFSCOPE_HD constexpr bool is_nan_scale(Scale format, std::uint8_t code) {
  if (format == Scale::e8m0) return code == kE8M0Nan;
  return halfscope::is_nan(kFloat8E4M3, code);
}

/// Decodes a scale that is not NaN. E8M0 has E4M3's three fraction bits here, so that all addends
/// have the places that on_grid() needs.
HALFSCOPE_HD constexpr Term term(Scale format, std::uint8_t code) {
  if (format == Scale::e4m3) return term(kFloat8E4M3, code);
  const int exponent = e8m0_exponent(code);
  return {false, 8, exponent - 3, exponent};
}

/// Multiplies by a scale, whose sign is ignored. Zero has no exponent.
HALFSCOPE_HD constexpr Term scaled(const Term& t, const Term& scale) {
  const bool none = t.exponent == kNoFloor || scale.significand == 0;
  return {t.negative, t.significand * scale.significand, t.last + scale.last,
          none ? kNoFloor : t.exponent + scale.exponent};
}

/// Returns the exact sum of the `count` products of a group. The exponent of a group of several is
/// that of the product of the smallest normal numbers (E2M1: 0), unless all products are zero.
HALFSCOPE_HD constexpr Term sum_of_group(const ScaledUnit& unit, const ScaledOperand& a,
                                         const ScaledOperand& b, int first, int count) {
  const auto at = [&](int i) {
    return product(unit.unit, a.format, a.elements[i], b.format, b.elements[i]);
  };
  if (unit.group == 1) return at(first);
  const int last = a.format.min_quantum_exponent() + b.format.min_quantum_exponent();
  std::int64_t sum = 0;
  int exponent = kNoFloor;
  for (int i = first; i < first + count; ++i) {
    const Term one = at(i);
    if (one.significand == 0) continue;
    const std::int64_t size = std::int64_t{one.significand} << (one.last - last);
    sum += one.negative ? -size : size;
    exponent = a.format.emin() + b.format.emin();
  }
  return {sum < 0, static_cast<std::uint32_t>(sum < 0 ? -sum : sum), last, exponent};
}

/// Returns addend i of a step of `count` products: the sum of its group i, times both scales.
HALFSCOPE_HD constexpr Term scaled_group(const ScaledUnit& unit, const ScaledOperand& a,
                                         const ScaledOperand& b, int count, int i) {
  const int first = i * unit.group, left = count - first;
  const Term sum = sum_of_group(unit, a, b, first, left < unit.group ? left : unit.group);
  if (unit.block == 0) return sum;
  const int block = first / unit.block;
  return scaled(scaled(sum, term(unit.scale, a.scales[block])), term(unit.scale, b.scales[block]));
}

}  // namespace detail

/// D of one step of at most unit.unit.length products. Any NaN, among the scales too, results in
/// all ones except the sign. Unless unit.block is 0, C and D must be in binary32. Calls `seen` as
/// detail::aligned_sum() does, if all operands are finite.
template <class Seen = detail::Unseen>
HALFSCOPE_HD constexpr std::uint32_t scaled_step(const ScaledUnit& unit, const ScaledOperand& a,
                                                 const ScaledOperand& b, int count, std::uint32_t c,
                                                 Accumulator d = Accumulator::binary32,
                                                 const Seen& seen = {}) {
  detail::Special special =
      detail::special_of(d, a.format, a.elements, b.format, b.elements, count, c);
  for (int i = 0; unit.block != 0 && i * unit.block < count; ++i) {
    special.nan |= detail::is_nan_scale(unit.scale, a.scales[i]) ||
                   detail::is_nan_scale(unit.scale, b.scales[i]);
  }
  if (special.any()) return special.result(format_of(d));
  const int groups = (count + unit.group - 1) / unit.group;
  const auto group = [&](int i) { return detail::scaled_group(unit, a, b, count, i); };
  return detail::aligned_sum(unit.unit, d, c, groups, group, seen);
}

/// D of a chain of steps over `count` products, in their order, like chain(). Each operand has
/// ceil(count / unit.block) scales.
HALFSCOPE_HD constexpr std::uint32_t scaled_chain(const ScaledUnit& unit, const ScaledOperand& a,
                                                  const ScaledOperand& b, int count,
                                                  std::uint32_t c) {
  const int length = unit.unit.length;
  for (int first = 0; first < count; first += length) {
    const int left = count - first, scale = first / unit.block;
    c = scaled_step(unit, {a.format, a.elements + first, a.scales + scale},
                    {b.format, b.elements + first, b.scales + scale}, left < length ? left : length,
                    c);
  }
  return c;
}

}  // namespace halfscope::tensor_core
