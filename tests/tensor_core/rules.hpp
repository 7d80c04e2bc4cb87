// SPDX-License-Identifier: Apache-2.0
// What an instruction may do with its operands: the unit's step, for FP8 also by way of binary16.
#pragma once

#include "halfscope/number/arithmetic.hpp"
#include "tensor_core/operands.hpp"

namespace probe {

/// How FP8 reaches a unit.
enum class Fp8 : std::uint8_t {
  native,        ///< as it is
  pairs,         ///< as binary16: first the products of k mod 4 < 2, then the others
  halves,        ///< as binary16: first the lower half of k
  pairs_from_c,  ///< like pairs, but the sum begins at C; else C is added last, to nearest even
};

struct Rule {
  halfscope::tensor_core::Unit unit;
  Fp8 fp8 = Fp8::native;

  friend constexpr bool operator==(const Rule&, const Rule&) = default;
};

namespace detail {

constexpr int kFp8Products = 32;

/// The place of the i-th product in the order of the unit.
HALFSCOPE_HD constexpr int place_of(Fp8 fp8, int i) {
  if (fp8 == Fp8::halves) return i;
  return i % (kFp8Products / 2) / 2 * 4 + i % 2 + i / (kFp8Products / 2) * 2;
}

HALFSCOPE_HD constexpr std::uint32_t sum_rounded(Accumulator d, std::uint32_t x, std::uint32_t y) {
  const halfscope::Format f = halfscope::tensor_core::format_of(d);
  return static_cast<std::uint32_t>(
      halfscope::add(f, x, y, {.nan = halfscope::NanPolicy::cuda}).bits);
}

template <halfscope::Format A, halfscope::Format B>
HALFSCOPE_HD constexpr std::uint32_t by_binary16(const Rule& rule, Accumulator d,
                                                 const std::uint16_t* a, const std::uint16_t* b,
                                                 std::uint32_t c) {
  std::uint16_t x[kFp8Products]{}, y[kFp8Products]{};
  for (int i = 0; i < kFp8Products; ++i) {
    const int place = place_of(rule.fp8, i);
    const halfscope::Modes modes = {.nan = halfscope::NanPolicy::cuda};
    x[i] = static_cast<std::uint16_t>(
        halfscope::convert(halfscope::kBinary16, A, a[place], modes).bits);
    y[i] = static_cast<std::uint16_t>(
        halfscope::convert(halfscope::kBinary16, B, b[place], modes).bits);
  }
  const bool last = rule.fp8 != Fp8::pairs_from_c;
  const std::uint32_t sum =
      halfscope::tensor_core::chain(rule.unit, d, x, y, kFp8Products, last ? 0 : c);
  return last ? sum_rounded(d, c, sum) : sum;
}

}  // namespace detail

/// D of an instruction or a chain of them: `count` products, of encodings of A and B.
template <halfscope::Format A, halfscope::Format B = A>
HALFSCOPE_HD constexpr std::uint32_t result_of(const Rule& rule, Accumulator d,
                                               const std::uint16_t* a, const std::uint16_t* b,
                                               int count, std::uint32_t c) {
  if (rule.fp8 == Fp8::native) {
    return halfscope::tensor_core::chain<A, B>(rule.unit, d, a, b, count, c);
  }
  for (int first = 0; first < count; first += detail::kFp8Products) {
    c = detail::by_binary16<A, B>(rule, d, a + first, b + first, c);
  }
  return c;
}

HALFSCOPE_HD constexpr std::uint32_t result_of(const Rule& rule, Operands operands, Accumulator d,
                                               const std::uint16_t* a, const std::uint16_t* b,
                                               int count, std::uint32_t c) {
  switch (operands) {
    case Operands::binary16: break;
    case Operands::bfloat16: return result_of<halfscope::kBfloat16>(rule, d, a, b, count, c);
    case Operands::e4m3: return result_of<halfscope::kFloat8E4M3>(rule, d, a, b, count, c);
    case Operands::e5m2: return result_of<halfscope::kFloat8E5M2>(rule, d, a, b, count, c);
    case Operands::e5m2_e4m3:
      return result_of<halfscope::kFloat8E5M2, halfscope::kFloat8E4M3>(rule, d, a, b, count, c);
  }
  return result_of<halfscope::kBinary16>(rule, d, a, b, count, c);
}

}  // namespace probe
