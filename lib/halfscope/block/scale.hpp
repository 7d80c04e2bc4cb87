// SPDX-License-Identifier: Apache-2.0
// From the largest magnitudes of a tensor and of a block to scales: each line is one binary32
// operation, rounded to nearest even, in the order that the formula's library has.
// docs/numerics/recipes.md, sections 2 to 4, has the same lines with their sources.
#pragma once

#include <cstdint>

#include "halfscope/block/recipe.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/scale_e8m0.hpp"

namespace halfscope::block {

inline constexpr float kFloatMax = 0x1.fffffep127F;
inline constexpr float kSixth = 1.0F / 6.0F;

/// Numbers that all blocks below one second scale share.
struct SecondFactors {
  float encode = 1;     ///< multiplies a block's largest magnitude
  float decode = 1;     ///< times code and block scale: the value
  float unit = kSixth;  ///< nvfp4: encode / 6
  float largest = 0;    ///< the largest magnitude that they come from
};

/// The scale of a block.
struct BlockFactor {
  std::uint32_t stored;  ///< a code of the scale format, or a binary32 encoding
  float factor;          ///< multiplies the values, or divides them: divides()
};

namespace steps {

HALFSCOPE_HD constexpr std::uint32_t bits_of(float x) { return detail::bit_cast<std::uint32_t>(x); }
HALFSCOPE_HD constexpr float float_of(std::uint32_t bits) { return detail::bit_cast<float>(bits); }
/// Returns the encoding of |x|: a larger magnitude has a larger one, and NaN the largest.
HALFSCOPE_HD constexpr std::uint32_t magnitude_of(float x) { return bits_of(x) & 0x7FFFFFFF; }
HALFSCOPE_HD constexpr bool is_nan(float x) { return x != x; }
/// Returns x, or 0x7FC00000 for every NaN: processors differ in the payloads that they compute.
HALFSCOPE_HD constexpr float with_one_nan(float x) { return is_nan(x) ? float_of(0x7FC00000) : x; }
/// Limits that keep NaN.
HALFSCOPE_HD constexpr float at_most(float x, float limit) { return x > limit ? limit : x; }
HALFSCOPE_HD constexpr float at_least(float x, float limit) { return x < limit ? limit : x; }

HALFSCOPE_HD constexpr float e4m3_value(std::uint32_t code) {
  return decode(Element::e4m3, static_cast<std::uint8_t>(code));
}

/// Rounds a scale to E4M3.
HALFSCOPE_HD constexpr std::uint32_t e4m3_code(float scale) { return encode(Element::e4m3, scale); }

/// Exponent field of a magnitude.
HALFSCOPE_HD constexpr int field(std::uint32_t magnitude) {
  return static_cast<int>(magnitude >> 23);
}

/// Returns a power of two as binary32. field: its exponent field, from -23 (2^-149) on.
HALFSCOPE_HD constexpr float power_of_field(int field) {
  return float_of(field > 0 ? static_cast<std::uint32_t>(field) << 23
                            : std::uint32_t{1} << (field + 22));
}

}  // namespace steps

/// Returns true if a formula divides values by BlockFactor::factor.
HALFSCOPE_HD constexpr bool divides(Formula formula) {
  switch (formula) {
    case Formula::nvfp4_modelopt:
    case Formula::nvfp4_compressed_tensors:
    case Formula::mx_torchao_floor:
    case Formula::mx_torchao_even:
    case Formula::mx_torchao_ceil:
    case Formula::fp8_divide: return true;
    default: return false;
  }
}

/// Returns true if steps::mx() gives the formula's scales.
HALFSCOPE_HD constexpr bool has_mx_rule(Formula formula) {
  return formula >= Formula::mx_floor && formula <= Formula::mx_round_up_from_1;
}

/// Returns true if each block tries 4 and 6 as its largest element: four_over_six.hpp.
HALFSCOPE_HD constexpr bool tries_two_scales(Formula formula) {
  return formula == Formula::nvfp4_four_over_six ||
         formula == Formula::nvfp4_four_over_six_square ||
         formula == Formula::nvfp4_four_over_six_448;
}

/// Largest scale of nvfp4 times the largest element. 256 leaves room for 1.5 times as much.
HALFSCOPE_HD constexpr float nvfp4_range(Formula formula) {
  const bool narrow = tries_two_scales(formula) && formula != Formula::nvfp4_four_over_six_448;
  return narrow ? 6 * 256 : 6 * 448;
}

/// Returns what all blocks of a tensor, or of a row, share. largest: the largest magnitude in it.
HALFSCOPE_HD constexpr SecondFactors second_factors(const Recipe& recipe, float largest) {
  SecondFactors out;
  out.largest = largest;
  switch (recipe.formula) {
    case Formula::nvfp4:
    case Formula::nvfp4_two_roundings:
    case Formula::nvfp4_four_over_six:
    case Formula::nvfp4_four_over_six_square:
    case Formula::nvfp4_four_over_six_448:
      out.encode = steps::at_most(nvfp4_range(recipe.formula) / largest, kFloatMax);
      if (largest == 0 || out.encode == 0) out.encode = 1;
      out.decode = 1 / out.encode;
      out.unit = out.encode * kSixth;
      break;
    case Formula::nvfp4_torchao:
    case Formula::nvfp4_modelopt:
      out.decode = largest / nvfp4_range(recipe.formula);
      out.encode = 1 / out.decode;
      break;
    case Formula::nvfp4_compressed_tensors:
      out.encode = nvfp4_range(recipe.formula) / steps::at_least(largest, 0x1p-126F);
      if (!(out.encode <= kFloatMax)) out.encode = 1;
      out.decode = 1 / out.encode;
      break;
    default: break;
  }
  out.decode = steps::with_one_nan(out.decode);
  return out;
}

namespace steps {

/// Transformer Engine's factor of a block with this scale, before it is rounded.
HALFSCOPE_HD constexpr BlockFactor nvfp4_factor(float scale, const SecondFactors& second) {
  const std::uint32_t code = e4m3_code(at_most(scale, kFloatMax));
  return {code, at_most(1 / (e4m3_value(code) * second.decode), kFloatMax)};
}

/// NVFP4. b: the block's largest magnitude.
HALFSCOPE_HD constexpr BlockFactor nvfp4(Formula formula, const SecondFactors& second, float b) {
  switch (formula) {
    case Formula::nvfp4: return nvfp4_factor(b * second.unit, second);
    case Formula::nvfp4_torchao: {
      const std::uint32_t code = e4m3_code(at_most(at_least(b / 6 / second.decode, 0x1p-6F), 448));
      return {code, second.encode / e4m3_value(code)};
    }
    case Formula::nvfp4_modelopt: {
      const float scale = b / (6 * second.decode);
      const std::uint32_t code = e4m3_code(scale == 0 ? 1 : at_least(scale, 0x1p-9F));
      return {code, e4m3_value(code) * second.decode};
    }
    case Formula::nvfp4_compressed_tensors: {
      const std::uint32_t code = e4m3_code(second.encode * (b / 6));
      const std::uint32_t used = code == 0 ? e4m3_code(0.125F) : code;
      return {used, e4m3_value(used) / second.encode};
    }
    default: break;
  }
  return nvfp4_factor(b / 6 * second.encode, second);
}

/// Constants of an MX formula. mx_biased() computes the stored scale B from them; the scale is
/// 2^(B - 127).
struct MxRule {
  float multiplier;                ///< multiplies the largest magnitude first
  std::uint32_t add;               ///< is then added to the product's binary32 encoding
  std::uint32_t add_to_subnormal;  ///< is added instead if the product is subnormal
  int subtract;                    ///< is subtracted from the exponent field of that sum
  int least = 0;                   ///< smallest B that is stored
  int none = 1000;                 ///< the B that becomes NaN; 1000, which no B is: never
};

HALFSCOPE_HD constexpr MxRule mx_rule(Formula formula, Element element) {
  const Format format = format_of(element);
  const std::uint32_t half = 1U << (22 - format.fraction_bits());
  constexpr std::uint32_t kUp = 0x7FFFFF;  // to the next power of two
  switch (formula) {
    case Formula::mx_even:
    case Formula::mx_torchao_even: return {1, half, half, format.emax, 0, 255 - format.emax};
    case Formula::mx_ceil:
    case Formula::mx_torchao_ceil: return {1, kUp, kUp, format.emax};
    case Formula::mx_round_up: return {1 / largest_of(element), kUp, kUp / 2, 0};
    case Formula::mx_round_up_from_1: return {1 / largest_of(element), kUp, kUp / 2, 0, 1};
    default: return {1, 0, 0, format.emax};
  }
}

/// magnitude: the encoding of the block's largest magnitude, which is finite.
HALFSCOPE_HD constexpr int mx_biased(const MxRule& rule, std::uint32_t magnitude) {
  const std::uint32_t d = bits_of(float_of(magnitude) * rule.multiplier);
  return field(d + (d < 0x800000 ? rule.add_to_subnormal : rule.add)) - rule.subtract;
}

HALFSCOPE_HD constexpr int clamped(int x, int least, int most) {
  return x < least ? least : x > most ? most : x;
}

inline constexpr std::uint32_t kInfinityBits = 0x7F800000, kNanBits = 0x7FC00000;

/// Rounding to nearest may reach 2^128, which has no scale, like an infinity and NaN. Without
/// branches, so that compilers make vector code of loops.
HALFSCOPE_HD constexpr BlockFactor mx(const MxRule& rule, std::uint32_t magnitude) {
  const int biased = mx_biased(rule, magnitude);
  const bool none = magnitude >= kInfinityBits || biased == rule.none;
  const int scale = clamped(magnitude == 0 ? 0 : biased, rule.least, 254);
  const int factor = scale == 254 ? 1 << 22 : (254 - scale) << 23;
  return {none ? std::uint32_t{kE8M0Nan} : static_cast<std::uint32_t>(scale),
          float_of(none ? kNanBits : static_cast<std::uint32_t>(factor))};
}

/// Returns torchao 0.18.0's scale, and the divisor of the values: the scale, but at least 2^-126.
/// A block with a NaN stores NaN and is divided by infinity. A block with an infinity stores code
/// 255, and its divisor has the exponent field 255 too.
HALFSCOPE_HD constexpr BlockFactor mx_torchao(Formula formula, Element element,
                                              std::uint32_t magnitude) {
  if (magnitude > kInfinityBits) return {kE8M0Nan, float_of(kInfinityBits)};
  const int scale = clamped(mx_biased(mx_rule(formula, element), magnitude), 0, 255);
  return {static_cast<std::uint32_t>(scale), power_of_field(scale < 1 ? 1 : scale)};
}

/// torchao 0.18.0 rounds up by ceil(log2(d)) in binary32, which is log2(2^k) for a d just above it:
/// up to ln(2) / 2 * 2^j units of the last place of d, where 2^j is the binade of k.
HALFSCOPE_HD constexpr BlockFactor mx_torchao_round_up(Element element, std::uint32_t magnitude) {
  const std::uint32_t d = bits_of(float_of(magnitude) / largest_of(element));
  if (d > kInfinityBits) return {kE8M0Nan, float_of(kNanBits)};
  if (d == kInfinityBits) return {254, power_of_field(0)};
  if (d == 0) return {0, 1};
  const int k = detail::bit_width(d) <= 23 ? -127 : field(d) - 127;
  const std::uint32_t size = static_cast<std::uint32_t>(k < 0 ? -k : k);
  int j = detail::bit_width(size) - 1;
  if (k < 0 && size == 1U << j) --j;          // log2(d) is then below a power of two
  constexpr std::uint64_t kHalfLn2 = 0x58B9;  // times 2^16
  const std::uint64_t absorbed = k == 0 || j < 0 ? 0 : (kHalfLn2 << j) >> 16;
  const bool above = k == -127 ? (d & 0x7FFFFF) > 0x400000 : (d & 0x7FFFFF) > absorbed;
  const int scale = clamped(k + 127 + (above ? 1 : 0), 0, 254);
  return {static_cast<std::uint32_t>(scale), scale == 0 ? 1 : power_of_field(254 - scale)};
}

/// FP8 with binary32 scales. limit: the largest finite scale.
HALFSCOPE_HD constexpr BlockFactor fp8(Formula formula, float largest, float b, float limit) {
  switch (formula) {
    case Formula::fp8_divide: return {bits_of(b / largest), b / largest};
    case Formula::fp8_reciprocal: return {bits_of(b / largest), 1 / (b / largest)};
    case Formula::fp8_reciprocal_up: {
      const std::uint32_t scale = bits_of(b / largest);
      const float up = float_of((scale & 0x7FFFFF) != 0 ? (scale & 0x7F800000) + 0x800000 : scale);
      return {bits_of(up), 1 / up};
    }
    case Formula::fp8_binary64: {
      const auto scale = static_cast<float>(static_cast<double>(largest) / static_cast<double>(b));
      return {bits_of(1 / scale), scale};
    }
    default: break;
  }
  float scale = b == 0 || b > kFloatMax ? 1 : at_most(largest / b, limit);
  if (formula == Formula::fp8_power_of_two) scale = float_of(bits_of(scale) & 0xFF800000);
  return {bits_of(1 / scale), scale};
}

}  // namespace steps

/// Returns the scale of a block. magnitude: the encoding of its largest magnitude; a NaN's if it
/// has one. limit: the largest finite number of the type that the values came in.
HALFSCOPE_HD constexpr BlockFactor block_factor(const Recipe& recipe, const SecondFactors& second,
                                                std::uint32_t magnitude, float limit = kFloatMax) {
  const float b = steps::at_least(steps::float_of(magnitude), recipe.least);
  switch (recipe.scale) {
    case ScaleFormat::none: return {0, 1};
    case ScaleFormat::e4m3: return steps::nvfp4(recipe.formula, second, b);
    case ScaleFormat::e8m0:
      if (recipe.formula == Formula::mx_torchao_round_up) {
        return steps::mx_torchao_round_up(recipe.element, steps::bits_of(b));
      }
      if (divides(recipe.formula)) {
        return steps::mx_torchao(recipe.formula, recipe.element, steps::bits_of(b));
      }
      return steps::mx(steps::mx_rule(recipe.formula, recipe.element), steps::bits_of(b));
    case ScaleFormat::f32: break;
  }
  BlockFactor out = steps::fp8(recipe.formula, largest_of(recipe.element), b, limit);
  out.stored = steps::bits_of(steps::with_one_nan(steps::float_of(out.stored)));
  return out;
}

}  // namespace halfscope::block
