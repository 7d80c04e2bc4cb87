// SPDX-License-Identifier: Apache-2.0
// Inputs of the Tensor Core probe in binary16: every element is a function of its place, by integer
// arithmetic alone, so that the host and the device make the same ones. Those of other formats are
// made from these (operands.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/tensor_core/mma.hpp"

namespace probe {

using halfscope::tensor_core::Accumulator;

enum class Distribution : std::uint8_t {
  all_exponents,
  near_one,
  subnormals,    ///< with powers of two and zeros
  cancellation,  ///< exact, and a small term
  one_hot,       ///< few powers of two, the rest zero
  specials,      ///< NaN, infinities, zeros
  signed_zeros,
  overflow,   ///< sums about the largest binary16
  underflow,  ///< sums about the smallest binary16, ties with tiny terms
  layout_a,   ///< A counts, B selects: every model gives the same, exactly
  layout_b,   ///< the other way round
  layout_c,   ///< C counts, products are zero
  count
};

inline constexpr std::array<std::string_view, 12> kDistributions = {
    "all exponents", "near one", "subnormals", "cancellation", "one-hot",     "specials",
    "signed zeros",  "overflow", "underflow",  "layout of A",  "layout of B", "layout of C"};
inline constexpr int kRandomDistributions = 9;

/// The format of A and B, or of each.
enum class Operands : std::uint8_t { binary16, bfloat16, e4m3, e5m2, e5m2_e4m3 };

/// Where an instruction stands. `k` is that of the whole chain, a power of two.
struct Place {
  Distribution distribution;
  std::uint32_t instruction;
  int k;
  Operands operands = Operands::binary16;
};

namespace detail {

using Words = halfscope::PhiloxBlock;

enum class Role : std::uint32_t { a, b, c, instruction, pair };

HALFSCOPE_HD constexpr Words random(const Place& at, Role role, int row, int column) {
  const std::uint32_t place = (static_cast<std::uint32_t>(role) << 28) |
                              (static_cast<std::uint32_t>(row) << 16) |
                              static_cast<std::uint32_t>(column);
  return halfscope::philox4x32(
      {{at.instruction, place, static_cast<std::uint32_t>(at.distribution), 0}}, 0x7E50C02E, 1);
}

HALFSCOPE_HD constexpr Words of_instruction(const Place& at) {
  return random(at, Role::instruction, 0, 0);
}

HALFSCOPE_HD constexpr std::uint16_t half_of(std::uint32_t sign, std::uint32_t field,
                                             std::uint32_t fraction) {
  return static_cast<std::uint16_t>(((sign & 1) << 15) | (field << 10) | (fraction & 0x3FF));
}

/// Sign and fraction of a word, and an exponent field in [first, first + count).
HALFSCOPE_HD constexpr std::uint16_t random_half(std::uint32_t word, std::uint32_t first,
                                                 std::uint32_t count) {
  return half_of(word >> 31, first + ((word >> 10) & 0xFFFF) % count, word);
}

/// (-1)^sign * 2^exponent, exponent in [-24, 15].
HALFSCOPE_HD constexpr std::uint16_t power_of_two(std::uint32_t sign, int exponent) {
  if (exponent < -14) return half_of(sign, 0, std::uint32_t{1} << (exponent + 24));
  return half_of(sign, static_cast<std::uint32_t>(exponent + 15), 0);
}

HALFSCOPE_HD constexpr std::uint32_t float_of(std::uint32_t sign, int exponent,
                                              std::uint32_t fraction) {
  return ((sign & 1) << 31) | (static_cast<std::uint32_t>(exponent + 127) << 23) |
         (fraction & 0x7FFFFF);
}

HALFSCOPE_HD constexpr std::uint32_t widened(std::uint16_t half) {
  return static_cast<std::uint32_t>(
      halfscope::convert(halfscope::kBinary32, halfscope::kBinary16, half).bits);
}

/// C from a half: in binary32 often with more bits below.
HALFSCOPE_HD constexpr std::uint32_t c_of(Accumulator d, std::uint16_t half, std::uint32_t more) {
  if (d == Accumulator::binary16) return half;
  const bool normal = (half & 0x7C00) != 0 && (half & 0x7C00) != 0x7C00;
  return widened(half) | (normal && (more & 1) != 0 ? (more >> 8) & 0x1FFF : 0);
}

/// n + 1 as a half; exact below 2048.
HALFSCOPE_HD constexpr std::uint16_t counted(int n) {
  const auto value = static_cast<std::uint64_t>(n + 1);
  return static_cast<std::uint16_t>(
      halfscope::round_pack(halfscope::kBinary16, false, value, 0).bits);
}

// all exponents: the spread changes from instruction to instruction, the largest products of the
// widest one would hide everything else.

HALFSCOPE_HD constexpr std::uint16_t all_exponents(const Place& at, std::uint32_t word) {
  switch (at.instruction % 4) {
    case 0: return random_half(word, 0, 31);
    case 1: return random_half(word, 8, 15);
    case 2: return random_half(word, 3, 13);
    default: return random_half(word, 10, 6);
  }
}

HALFSCOPE_HD constexpr std::uint32_t all_exponents_c(const Place& at, Accumulator d,
                                                     const Words& w) {
  if (d == Accumulator::binary16) return all_exponents(at, w.words[0]);
  if (w.words[1] % 8 == 0)
    return float_of(w.words[0], static_cast<int>(w.words[2] % 254) - 126, w.words[3]);
  return float_of(w.words[0], static_cast<int>(w.words[2] % 40) - 26, w.words[3]);
}

// subnormals, powers of two, zeros

HALFSCOPE_HD constexpr std::uint16_t subnormals(const Words& w) {
  switch (w.words[1] % 4) {
    case 0: return half_of(w.words[0], 0, w.words[2]);
    case 1: return power_of_two(w.words[0], static_cast<int>(w.words[2] % 28) - 24);
    case 2: return half_of(w.words[0], 0, 0);
    default: return random_half(w.words[2], 0, 4);
  }
}

HALFSCOPE_HD constexpr std::uint32_t subnormals_c(Accumulator d, const Words& w) {
  if (d == Accumulator::binary16) return subnormals(w);
  switch (w.words[1] % 4) {
    case 0: return half_of(w.words[0], 0, 0) & 0x8000 ? 0x80000000 : 0;
    case 1: return (w.words[0] & 0x807FFFFF);  // subnormal
    case 2: return float_of(w.words[0], static_cast<int>(w.words[2] % 52) - 50, 0);
    default: return float_of(w.words[0], static_cast<int>(w.words[2] % 24) - 50, w.words[3]);
  }
}

// cancellation: place k and place k ^ mask hold a * b and -a * b. One such pair is a main term,
// which C cancels, and a small term.

struct Pairing {
  int mask, main;  ///< main: the lower place of the pair that is different
};

HALFSCOPE_HD constexpr Pairing pairing(const Place& at) {
  const Words w = of_instruction(at);
  const int mask = 1 + static_cast<int>(w.words[0] % static_cast<std::uint32_t>(at.k - 1));
  const int any = static_cast<int>(w.words[1] % static_cast<std::uint32_t>(at.k));
  return {mask, any < (any ^ mask) ? any : any ^ mask};
}

HALFSCOPE_HD constexpr std::uint16_t cancelling(const Place& at, Role role, int row, int k) {
  const Pairing pairs = pairing(at);
  const int lower = k < (k ^ pairs.mask) ? k : k ^ pairs.mask;
  const Words w = random(at, role, row, lower == pairs.main ? k : lower);
  if (lower == pairs.main && k != lower) return random_half(w.words[0], 2, 10);
  if (lower == pairs.main && role == Role::b) return random_half(w.words[0], 13, 4) & 0xFC00;
  const std::uint16_t value = random_half(w.words[0], 11, 8);
  return role == Role::a && k != lower ? value ^ 0x8000 : value;
}

HALFSCOPE_HD constexpr std::uint32_t cancelling_c(const Place& at, Accumulator d, int row,
                                                  int column) {
  const Words w = random(at, Role::c, row, column);
  const int main = pairing(at).main;
  const std::uint16_t a = cancelling(at, Role::a, row, main);
  const std::uint16_t b = cancelling(at, Role::b, column, main);
  if (w.words[1] % 4 == 0) return c_of(d, random_half(w.words[0], 1, 18), w.words[2]);
  // b is a power of two: its exponent is added to a's, which has room for it.
  const int field = ((a >> 10) & 31) + ((b >> 10) & 31) - 15;
  const std::uint16_t product =
      half_of((a ^ b) >> 15, static_cast<std::uint32_t>(field), a & 0x3FFU);
  const std::uint32_t exact = c_of(d, product ^ 0x8000, 0);
  const bool near = w.words[1] % 4 == 1;  // off by a little
  return near ? exact ^ (w.words[2] & 7) : exact;
}

// one-hot powers of two

HALFSCOPE_HD constexpr bool active(const Place& at, int k) {
  return random(at, Role::pair, 0, k).words[0] % 4 == 0;
}

HALFSCOPE_HD constexpr std::uint16_t one_hot(const Place& at, Role role, int row, int k) {
  if (!active(at, k)) return 0;
  const Words w = random(at, role, row, k);
  const int range = at.instruction % 2 == 0 ? 10 : 20;
  return power_of_two(w.words[0],
                      static_cast<int>(w.words[1] % static_cast<unsigned>(range)) - range + 4);
}

HALFSCOPE_HD constexpr std::uint32_t one_hot_c(Accumulator d, const Words& w) {
  const bool wide = d == Accumulator::binary32;
  switch (w.words[1] % 4) {
    case 0: return 0;
    case 1: {  // all ones below the leading bit
      const int exponent = static_cast<int>(w.words[2] % 8) - 6;
      return wide ? float_of(w.words[0], exponent, 0x7FFFFF)
                  : half_of(w.words[0], static_cast<std::uint32_t>(exponent + 15), 0x3FF);
    }
    default: {
      const int exponent = static_cast<int>(w.words[2] % 20) - 16;
      return wide ? float_of(w.words[0], exponent, w.words[3] & 7)
                  : power_of_two(w.words[0], exponent);
    }
  }
}

// NaN, infinities, zeros: how many changes from instruction to instruction.

HALFSCOPE_HD constexpr std::uint16_t special_half(const Place& at, const Words& w) {
  const std::uint32_t one_in = std::uint32_t{8} << (2 * (at.instruction % 3));
  if (w.words[0] % one_in != 0) return random_half(w.words[1], 12, 6);
  switch (w.words[2] % 8) {
    case 0: return half_of(w.words[1], 31, w.words[3] | 1);
    case 1:
    case 2: return half_of(0, 31, 0);
    case 3: return half_of(1, 31, 0);
    case 4:
    case 5: return half_of(w.words[1], 0, 0);
    case 6: return half_of(w.words[1], 30, 0x3FF);
    default: return half_of(w.words[1], 0, w.words[3]);
  }
}

/// A NaN keeps its sign and gets other bits; infinities and zeros stay what they are.
HALFSCOPE_HD constexpr std::uint32_t special_c(const Place& at, Accumulator d, const Words& w) {
  const std::uint16_t half = special_half(at, w);
  if (d == Accumulator::binary16) return half;
  if ((half & 0x7FFF) > 0x7C00) {
    return (std::uint32_t{half} & 0x8000) << 16 | 0x7F800001 | (w.words[3] & 0x7FFFFF);
  }
  return c_of(d, half, w.words[3]);
}

HALFSCOPE_HD constexpr std::uint16_t signed_zero(const Place& at, const Words& w) {
  const std::uint32_t one_in = at.instruction % 2 == 0 ? 32 : 1000000;
  if (w.words[0] % one_in != 0) return half_of(w.words[1], 0, 0);
  return w.words[2] % 2 == 0 ? half_of(w.words[1], 0, w.words[3] % 4) : half_of(w.words[1], 15, 0);
}

/// In binary32 sometimes one of its subnormals: only zero products leave it to be seen.
HALFSCOPE_HD constexpr std::uint32_t signed_zero_c(const Place& at, Accumulator d, const Words& w) {
  if (d == Accumulator::binary32 && w.words[2] % 8 == 0) return w.words[3] & 0x807FFFFF;
  return c_of(d, signed_zero(at, w), 0);
}

// overflow: integers about 65504, or products that leave it far behind

HALFSCOPE_HD constexpr std::uint16_t overflowing(const Place& at, Role role, int row, int k) {
  const Words w = random(at, role, row, k);
  if (at.instruction % 4 == 0) return random_half(w.words[0], 20, 4);
  if (!active(at, k)) return w.words[1] % 4 == 0 ? random_half(w.words[0], 1, 6) : 0;
  if (role == Role::b) return power_of_two(w.words[1], static_cast<int>(w.words[2] % 2));
  return random_half(w.words[0], 15, 5) & 0xFFE0;
}

HALFSCOPE_HD constexpr std::uint32_t overflowing_c(Accumulator d, const Words& w) {
  const std::uint16_t largest = half_of(w.words[0], 30, 0x3FF - w.words[1] % 4);
  const std::uint16_t half = w.words[2] % 4 == 0 ? random_half(w.words[0], 27, 4) : largest;
  return c_of(d, half, w.words[3]);
}

// underflow: one place makes a multiple of 2^-26 or so, few others the tiny terms that break a tie

HALFSCOPE_HD constexpr std::uint16_t underflowing(const Place& at, Role role, int row, int k) {
  const Words facts = of_instruction(at);
  const Words w = random(at, role, row, k);
  const auto main = static_cast<int>(facts.words[0] % static_cast<std::uint32_t>(at.k));
  if (k == main) {
    const int exponent = -12 - static_cast<int>(w.words[1] % 3);
    const std::uint16_t odd = role == Role::a && w.words[2] % 4 == 0 ? 0x200 : 0;
    return power_of_two(w.words[0], exponent) | odd;
  }
  const std::uint32_t one_in = std::uint32_t{2} << (facts.words[1] % 3);
  if (random(at, Role::pair, 0, k).words[0] % one_in != 0) {  // A has zero
    const bool beside_zero = role == Role::b && facts.words[3] % 2 == 0;
    return beside_zero ? random_half(w.words[0], 0, 31) : half_of(w.words[0], 0, 0);
  }
  const std::uint32_t steps = facts.words[2] % 4 == 0 ? 64 : 4;
  return half_of(w.words[0], 0, 1 + w.words[1] % steps);
}

HALFSCOPE_HD constexpr std::uint32_t underflowing_c(Accumulator d, const Words& w) {
  if (w.words[1] % 2 == 0) return 0;
  const std::uint16_t half = half_of(w.words[0], 0, w.words[2] % 8);
  return c_of(d, half, 0);
}

/// A[row][k] of an instruction.
HALFSCOPE_HD constexpr std::uint16_t half_a(const Place& at, int row, int k) {
  const Words w = random(at, Role::a, row, k);
  switch (at.distribution) {
    case Distribution::all_exponents: return all_exponents(at, w.words[0]);
    case Distribution::near_one: return random_half(w.words[0], 13, 4);
    case Distribution::subnormals: return subnormals(w);
    case Distribution::cancellation: return cancelling(at, Role::a, row, k);
    case Distribution::one_hot: return one_hot(at, Role::a, row, k);
    case Distribution::specials: return special_half(at, w);
    case Distribution::signed_zeros: return signed_zero(at, w);
    case Distribution::overflow: return overflowing(at, Role::a, row, k);
    case Distribution::underflow: return underflowing(at, Role::a, row, k);
    case Distribution::layout_a: return counted(row * 16 + k % 16);
    case Distribution::layout_b: return k == row % at.k ? 0x3C00 : 0;
    case Distribution::layout_c:
    case Distribution::count: break;
  }
  return 0;
}

/// B[k][column].
HALFSCOPE_HD constexpr std::uint16_t half_b(const Place& at, int column, int k) {
  const Words w = random(at, Role::b, column, k);
  switch (at.distribution) {
    case Distribution::all_exponents: return all_exponents(at, w.words[0]);
    case Distribution::near_one: return random_half(w.words[0], 13, 4);
    case Distribution::subnormals: return subnormals(w);
    case Distribution::cancellation: return cancelling(at, Role::b, column, k);
    case Distribution::one_hot: return one_hot(at, Role::b, column, k);
    case Distribution::specials: return special_half(at, w);
    case Distribution::signed_zeros: return signed_zero(at, w);
    case Distribution::overflow: return overflowing(at, Role::b, column, k);
    case Distribution::underflow: return underflowing(at, Role::b, column, k);
    case Distribution::layout_a: {
      // Every place of A is selected by some column of some instruction.
      const auto shift = static_cast<int>(at.instruction % static_cast<unsigned>(at.k));
      return k == (column + shift) % at.k ? 0x3C00 : 0;
    }
    case Distribution::layout_b: return counted(column * 16 + k % 16);
    case Distribution::layout_c:
    case Distribution::count: break;
  }
  return 0;
}

/// C[row][column], an encoding of the accumulator's format.
HALFSCOPE_HD constexpr std::uint32_t half_c(const Place& at, Accumulator d, int row, int column) {
  const Words w = random(at, Role::c, row, column);
  switch (at.distribution) {
    case Distribution::all_exponents: return all_exponents_c(at, d, w);
    case Distribution::near_one: return c_of(d, random_half(w.words[0], 13, 5), w.words[1] | 1);
    case Distribution::subnormals: return subnormals_c(d, w);
    case Distribution::cancellation: return cancelling_c(at, d, row, column);
    case Distribution::one_hot: return one_hot_c(d, w);
    case Distribution::specials: return special_c(at, d, w);
    case Distribution::signed_zeros: return signed_zero_c(at, d, w);
    case Distribution::overflow: return overflowing_c(d, w);
    case Distribution::underflow: return underflowing_c(d, w);
    case Distribution::layout_c: return c_of(d, counted(row * 8 + column), 0);
    case Distribution::layout_a:
    case Distribution::layout_b:
    case Distribution::count: break;
  }
  return 0;
}

}  // namespace detail
}  // namespace probe
