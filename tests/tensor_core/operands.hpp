// SPDX-License-Identifier: Apache-2.0
// Inputs of the Tensor Core probe in every format of operands. Those that are not binary16 are made
// from binary16's: the exponent finds its place in the format, fractions keep their highest bits,
// those of subnormals their lowest.
#pragma once

#include "tensor_core/inputs.hpp"

namespace probe {

HALFSCOPE_HD constexpr halfscope::Format format_of_a(Operands operands) {
  switch (operands) {
    case Operands::binary16: return halfscope::kBinary16;
    case Operands::bfloat16: return halfscope::kBfloat16;
    case Operands::e4m3: return halfscope::kFloat8E4M3;
    case Operands::e5m2:
    case Operands::e5m2_e4m3: break;
  }
  return halfscope::kFloat8E5M2;
}

HALFSCOPE_HD constexpr halfscope::Format format_of_b(Operands operands) {
  if (operands == Operands::e5m2_e4m3) return halfscope::kFloat8E4M3;
  return format_of_a(operands);
}

namespace detail {

struct HalfParts {
  std::uint32_t sign, field, fraction;
};

HALFSCOPE_HD constexpr HalfParts parts_of(std::uint16_t half) {
  return {static_cast<std::uint32_t>(half) >> 15, (static_cast<std::uint32_t>(half) >> 10) & 31,
          half & 0x3FFU};
}

HALFSCOPE_HD constexpr int clamped(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

/// bfloat16 has exponents that binary16 lacks. Four instructions in a row have exponents about 1,
/// the next four such that products are about the smallest binary32, then about the largest, then
/// of all sizes.
enum class Region : std::uint8_t { about_one, smallest, largest, all };

HALFSCOPE_HD constexpr Region region_of(const Place& at) {
  return static_cast<Region>(at.instruction / 4 % 4);
}

HALFSCOPE_HD constexpr int shift_of(Region region) {
  if (region == Region::smallest) return -64;
  return region == Region::largest ? 58 : 0;
}

HALFSCOPE_HD constexpr std::uint32_t to_bfloat16(const Place& at, const HalfParts& x) {
  const std::uint32_t sign = x.sign << 15;
  if (x.field == 0) return sign | (x.fraction & 0x7F);
  if (x.field == 31) return sign | 0x7F80 | (x.fraction == 0 ? 0 : x.fraction >> 3 | 1);
  const Region region = region_of(at);
  const std::uint32_t field =
      region == Region::all
          ? x.field * 8 + (x.fraction & 7)
          : static_cast<std::uint32_t>(112 + static_cast<int>(x.field) + shift_of(region));
  return sign | field << 7 | x.fraction >> 3;
}

HALFSCOPE_HD constexpr std::uint32_t to_e4m3(const HalfParts& x) {
  const std::uint32_t sign = x.sign << 7;
  if (x.field == 0) return sign | (x.fraction & 7);
  if (x.field == 31) return sign | (x.fraction == 0 ? 0x7E : 0x7F);
  const auto field = static_cast<std::uint32_t>(clamped(static_cast<int>(x.field) - 8, 0, 15));
  const std::uint32_t magnitude = field << 3 | x.fraction >> 7;
  return sign | (magnitude == 0x7F ? 0x7E : magnitude);
}

HALFSCOPE_HD constexpr std::uint32_t to_e5m2(const HalfParts& x) {
  const std::uint32_t sign = x.sign << 7;
  if (x.field == 0) return sign | (x.fraction & 3);
  const std::uint32_t magnitude = x.field << 2 | x.fraction >> 8;
  return sign | magnitude | (x.field == 31 && x.fraction != 0 ? 1 : 0);
}

HALFSCOPE_HD constexpr std::uint16_t operand(const Place& at, halfscope::Format f,
                                             std::uint16_t half) {
  const HalfParts parts = parts_of(half);
  switch (f.precision) {
    case halfscope::kBfloat16.precision: return static_cast<std::uint16_t>(to_bfloat16(at, parts));
    case halfscope::kFloat8E4M3.precision: return static_cast<std::uint16_t>(to_e4m3(parts));
    default: return static_cast<std::uint16_t>(to_e5m2(parts));
  }
}

HALFSCOPE_HD constexpr std::uint16_t one_of(halfscope::Format f) {
  return static_cast<std::uint16_t>(
      halfscope::convert(f, halfscope::kBinary16, std::uint64_t{0x3C00}).bits);
}

/// What a layout check multiplies with one: any sign and fraction.
HALFSCOPE_HD constexpr std::uint16_t marked(halfscope::Format f, std::uint32_t word) {
  const auto any = static_cast<std::uint32_t>(f.sign_mask() | f.fraction_mask());
  return static_cast<std::uint16_t>(one_of(f) ^ (word & any));
}

/// C of binary32 where the exponents of products are.
HALFSCOPE_HD constexpr std::uint32_t in_region(Region region, std::uint32_t c) {
  const std::uint32_t sign = c & 0x80000000, fraction = c & 0x7FFFFF;
  const int field = static_cast<int>((c >> 23) & 255);
  if (field == 0 || field == 255) return c;
  const int wanted = region == Region::all ? 127 + (field - 127) * 8 : field + 2 * shift_of(region);
  if (wanted >= 1)
    return sign | static_cast<std::uint32_t>(clamped(wanted, 1, 254)) << 23 | fraction;
  return wanted < -22 ? sign : sign | (fraction | 0x800000) >> (1 - wanted);
}

/// What cancels the main product, often off by a little.
HALFSCOPE_HD constexpr std::uint32_t cancelling_product(const Place& at, Accumulator d, int row,
                                                        int column, std::uint32_t otherwise) {
  const Words w = random(at, Role::c, row, column);
  if (w.words[1] % 4 == 0) return otherwise;
  const int main = pairing(at).main;
  const halfscope::Format fa = format_of_a(at.operands), fb = format_of_b(at.operands);
  const auto product = halfscope::tensor_core::detail::product(
      {}, fa, operand(at, fa, cancelling(at, Role::a, row, main)), fb,
      operand(at, fb, cancelling(at, Role::b, column, main)));
  const auto exact = static_cast<std::uint32_t>(
      halfscope::round_pack(halfscope::tensor_core::format_of(d), !product.negative,
                            product.significand, product.last)
          .bits);
  return w.words[1] % 4 == 1 ? exact ^ (w.words[2] & 7) : exact;
}

}  // namespace detail

/// A[row][k] of an instruction, an encoding of at.operands.
HALFSCOPE_HD constexpr std::uint16_t a_element(const Place& at, int row, int k) {
  if (at.operands == Operands::binary16) return detail::half_a(at, row, k);
  const halfscope::Format f = format_of_a(at.operands);
  if (at.distribution == Distribution::layout_a) {
    return detail::marked(f, detail::random(at, detail::Role::a, row, k).words[0]);
  }
  const std::uint16_t half = detail::half_a(at, row, k);
  if (at.distribution == Distribution::layout_b) return half == 0 ? 0 : detail::one_of(f);
  return detail::operand(at, f, half);
}

/// B[k][column].
HALFSCOPE_HD constexpr std::uint16_t b_element(const Place& at, int column, int k) {
  if (at.operands == Operands::binary16) return detail::half_b(at, column, k);
  const halfscope::Format f = format_of_b(at.operands);
  if (at.distribution == Distribution::layout_b) {
    return detail::marked(f, detail::random(at, detail::Role::b, column, k).words[0]);
  }
  const std::uint16_t half = detail::half_b(at, column, k);
  if (at.distribution == Distribution::layout_a) return half == 0 ? 0 : detail::one_of(f);
  return detail::operand(at, f, half);
}

/// C[row][column], an encoding of the accumulator's format.
HALFSCOPE_HD constexpr std::uint32_t c_element(const Place& at, Accumulator d, int row,
                                               int column) {
  const std::uint32_t c = detail::half_c(at, d, row, column);
  if (at.operands == Operands::binary16 || at.distribution >= Distribution::layout_a) return c;
  const bool wide = at.operands == Operands::bfloat16;
  const std::uint32_t placed = wide ? detail::in_region(detail::region_of(at), c) : c;
  if (at.distribution != Distribution::cancellation) return placed;
  return detail::cancelling_product(at, d, row, column, placed);
}

}  // namespace probe
