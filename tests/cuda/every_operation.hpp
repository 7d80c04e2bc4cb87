// SPDX-License-Identifier: Apache-2.0
// Every scalar operation of the library behind one function. It is compiled by g++ and by nvcc,
// whose copy lives in a namespace of another name (scalar_twin.cu): else the linker would keep one
// of the two and the comparison would compare a function with itself.
#pragma once

#include "cuda/call.hpp"
#include "halfscope/array/element.hpp"
#include "halfscope/block/four_over_six.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/cuda_half.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/number/remainder.hpp"

namespace halfscope::every {

using twin::Call;
using twin::Operation;

HALFSCOPE_HD inline Format format_of(const twin::FormatRow& row) {
  return {row.precision, row.emax, row.width, static_cast<Specials>(row.specials)};
}

HALFSCOPE_HD inline Modes modes_of(const Call& c) {
  Modes m;
  m.rounding = static_cast<Rounding>(c.rounding);
  m.tininess = static_cast<Tininess>(c.tininess);
  m.nan = static_cast<NanPolicy>(c.nan);
  m.denormals_are_zero = c.denormals_are_zero;
  m.flush_to_zero = c.flush_to_zero;
  m.saturate = c.saturate;
  m.random = c.random;
  m.random_bits = c.random_bits;
  return m;
}

HALFSCOPE_HD inline Rounded arithmetic(const Call& c, Format f, const Modes& m) {
  const auto type = static_cast<IntegerType>(c.variant & 3);
  const bool exact = (c.variant & 4) != 0;
  switch (c.operation) {
    case Operation::add: return add(f, c.a, c.b, m);
    case Operation::subtract: return subtract(f, c.a, c.b, m);
    case Operation::multiply: return multiply(f, c.a, c.b, m);
    case Operation::divide: return divide(f, c.a, c.b, m);
    case Operation::fused_multiply_add: return fused_multiply_add(f, c.a, c.b, c.c, m);
    case Operation::square_root: return square_root(f, c.a, m);
    case Operation::remainder: return remainder(f, c.a, c.b, m);
    case Operation::convert: return convert(format_of(c.other), f, c.a, m);
    case Operation::round_to_integral: return round_to_integral(f, c.a, m, exact);
    case Operation::to_integer: return to_integer(type, f, c.a, m, exact);
    case Operation::from_integer: return from_integer(f, type, c.b, m);
    case Operation::quantise_element: return element::quantise(f, c.c & 0xFFFFFFFF, m);
    default: return {};
  }
}

HALFSCOPE_HD inline Rounded compared(const Compared& x) { return {x.result ? 1U : 0U, x.flags}; }

HALFSCOPE_HD inline Rounded comparison(const Call& c, Format f, const Modes& m) {
  const OnNan on_nan = (c.variant & 1) != 0 ? OnNan::signaling : OnNan::quiet;
  switch (c.operation) {
    case Operation::equal: return compared(equal(f, c.a, c.b, on_nan, m));
    case Operation::less: return compared(less(f, c.a, c.b, on_nan, m));
    case Operation::less_equal: return compared(less_equal(f, c.a, c.b, on_nan, m));
    case Operation::unordered: return compared(unordered(f, c.a, c.b));
    case Operation::total_order: return {total_order(f, c.a, c.b) ? 1U : 0U, {}};
    case Operation::minimum: return minimum(f, c.a, c.b, m);
    case Operation::maximum: return maximum(f, c.a, c.b, m);
    case Operation::minimum_number: return minimum_number(f, c.a, c.b, m);
    case Operation::maximum_number: return maximum_number(f, c.a, c.b, m);
    case Operation::min_num: return min_num(f, c.a, c.b, m);
    case Operation::max_num: return max_num(f, c.a, c.b, m);
    default: return {};
  }
}

HALFSCOPE_HD inline Rounded neighbourly(const Call& c, Format f, const Modes& m) {
  switch (c.operation) {
    case Operation::next_up: return next_up(f, c.a, m);
    case Operation::next_down: return next_down(f, c.a, m);
    case Operation::scale_b: return scale_b(f, c.a, static_cast<std::int64_t>(c.c), m);
    case Operation::log_b: return log_b(f, c.a, m);
    case Operation::signs:
      return {negate(f, c.a) ^ (absolute(f, c.a) << 1) ^ (copy_sign(f, c.a, c.b) << 2), {}};
    case Operation::classify: return {static_cast<std::uint64_t>(classify(f, c.a)), {}};
    case Operation::random_word: return {random_word(c.a, c.b), {}};
    default: return {};
  }
}

/// A recipe of any formula, element and rounding, without names: device code cannot call
/// constructors of std::string_view.
HALFSCOPE_HD inline block::Recipe recipe_of(const Call& c) {
  using block::Formula;
  struct Zeros {
    std::uint64_t words[sizeof(block::Recipe) / sizeof(std::uint64_t)];
  };
  auto out = detail::bit_cast<block::Recipe>(Zeros{});
  out.block = {1, 16};
  constexpr auto kFormulas = static_cast<unsigned>(Formula::fp8_binary64) + 1;
  out.formula = static_cast<Formula>(c.random % kFormulas);
  out.rounding = static_cast<block::ElementRounding>(c.variant % 4);
  out.saturate = c.saturate;
  const bool none = out.formula == Formula::none;
  const bool nvfp4 = !none && out.formula <= Formula::nvfp4_compressed_tensors;
  const bool mx = !none && !nvfp4 && out.formula <= Formula::mx_torchao_round_up;
  out.element = nvfp4 ? block::Element::e2m1 : static_cast<block::Element>(c.b % (none ? 6 : 5));
  out.scale = none    ? block::ScaleFormat::none
              : nvfp4 ? block::ScaleFormat::e4m3
              : mx    ? block::ScaleFormat::e8m0
                      : block::ScaleFormat::f32;
  return out;
}

/// A block of 16 floats made from the operands; its scale, elements and their values, folded.
HALFSCOPE_HD inline Rounded block_of(const Call& c) {
  constexpr std::uint32_t kCount = 16;
  float values[kCount] = {};
  std::uint32_t largest = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::uint32_t word = random_word(c.a, i);
    const std::uint32_t exponent = (c.b % 2 == 0 ? 0x38U : 0xB8U) + (word >> 28);
    values[i] = detail::bit_cast<float>((word & 0x807FFFFF) | exponent << 23);
    const std::uint32_t magnitude = detail::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFF;
    if (magnitude > largest) largest = magnitude;
  }
  const block::Recipe recipe = recipe_of(c);
  const float b = detail::bit_cast<float>(largest);
  const block::SecondFactors second = block::second_factors(recipe, b * (c.c % 5 != 0 ? 1 : 999));
  const block::BlockFactor made =
      block::best_factor(recipe, second, largest, block::kFloatMax, values, kCount, 1, kCount);
  Rounded folded = {made.stored, {}};
  block::Encoding how = {.rounding = recipe.rounding, .saturate = recipe.saturate};
  for (std::uint32_t i = 0; i < kCount; ++i) {
    how.random = random_word(c.c, i);
    const bool divide = block::divides(recipe.formula);
    const float scaled = divide ? values[i] / made.factor : values[i] * made.factor;
    const std::uint8_t code = block::encode(recipe.element, scaled, how);
    const float value = block::decode(recipe.element, code);
    const std::uint32_t bits = value != value ? 1 : detail::bit_cast<std::uint32_t>(value);
    folded.bits = folded.bits * 0x9E3779B97F4A7C15 + (bits ^ code);
  }
  return folded;
}

HALFSCOPE_HD inline std::uint16_t half_operation(const Call& c) {
  const auto x = static_cast<std::uint16_t>(c.a), y = static_cast<std::uint16_t>(c.b);
  const auto z = static_cast<std::uint16_t>(c.c);
  if (c.operation == Operation::half_unary) {
    return c.variant % 3 == 0   ? cuda_half::hrcp(x)
           : c.variant % 3 == 1 ? cuda_half::hsqrt(x)
                                : cuda_half::hrsqrt(x);
  }
  switch (c.variant) {
    case 0: return cuda_half::hadd_sat(x, y);
    case 1: return cuda_half::hsub(x, y);
    case 2: return cuda_half::hmul_sat(x, y);
    case 3: return cuda_half::hdiv(x, y);
    case 4: return cuda_half::hfma_relu(x, y, z);
    case 5: return cuda_half::hmax(x, y);
    case 6: return cuda_half::hmin_nan(x, y);
    default: return cuda_half::hfma_sat(x, y, z);
  }
}

HALFSCOPE_HD inline Rounded rounded(const Call& c) {
  const Format f = format_of(c.format);
  const Modes m = modes_of(c);
  if (c.operation <= Operation::from_integer || c.operation == Operation::quantise_element) {
    return arithmetic(c, f, m);
  }
  if (c.operation <= Operation::max_num) return comparison(c, f, m);
  if (c.operation <= Operation::random_word) return neighbourly(c, f, m);
  if (c.operation == Operation::block) return block_of(c);
  return {half_operation(c), {}};
}

HALFSCOPE_HD inline twin::Outcome outcome(const Call& c) {
  const Rounded r = rounded(c);
  const Flags& f = r.flags;
  return {r.bits, (f.inexact ? 1U : 0U) | (f.underflow ? 2U : 0U) | (f.overflow ? 4U : 0U) |
                      (f.divide_by_zero ? 8U : 0U) | (f.invalid ? 16U : 0U)};
}

}  // namespace halfscope::every
