// SPDX-License-Identifier: Apache-2.0
// Elements of block formats: encodings of at most 8 bits, one per byte, which never overflow to an
// infinity unless asked. docs/numerics/recipes.md, section 1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "halfscope/block/hifloat8.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"

namespace halfscope::block {

enum class Element : std::uint8_t { e2m1, e2m3, e3m2, e4m3, e5m2, hifloat8 };

/// How a value between two codes is rounded. `random`: with probability equal to its distance from
/// the smaller magnitude, in units of the gap.
enum class ElementRounding : std::uint8_t { ties_to_even, ties_to_away, ties_to_zero, random };

/// Returns the format of an element; of hifloat8, which has no fixed precision, an empty format.
HALFSCOPE_HD constexpr Format format_of(Element element) {
  switch (element) {  // encode() is a tenth slower with a table
    case Element::e2m1: return kFloat4E2M1;
    case Element::e2m3: return kFloat6E2M3;
    case Element::e3m2: return kFloat6E3M2;
    case Element::e4m3: return kFloat8E4M3;
    case Element::e5m2: return kFloat8E5M2;
    case Element::hifloat8: break;
  }
  return {};
}

/// Returns the largest finite magnitude.
HALFSCOPE_HD constexpr float largest_of(Element element) {
  constexpr float kLargest[] = {6, 7.5F, 28, 448, 57344, 32768};
  return kLargest[static_cast<int>(element)];
}

/// Settings of encode().
struct Encoding {
  ElementRounding rounding = ElementRounding::ties_to_even;
  /// Magnitudes beyond the largest, infinities too, become the largest. If false they become what
  /// the format has for them: infinity, else NaN, else the largest.
  bool saturate = true;
  std::uint32_t random = 0;  ///< for ElementRounding::random: 32 random bits
};

/// Returns the value of a code, exactly; NaN for NaN.
HALFSCOPE_HD constexpr float decode(Element element, std::uint8_t code) {
  if (element == Element::hifloat8) return hifloat8_to_float(code);
  return detail::bit_cast<float>(
      static_cast<std::uint32_t>(convert(kBinary32, format_of(element), code).bits));
}

/// Rounds a binary32 value once to an element. NaN becomes the element's NaN with all bits set, or
/// zero if it has none.
HALFSCOPE_HD constexpr std::uint8_t encode(Element element, float value,
                                           const Encoding& options = {}) {
  const std::uint32_t bits = detail::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (element == Element::hifloat8) return hifloat8_from_bits(bits, options.saturate);
  const Format format = format_of(element);
  if (magnitude > 0x7F800000) {
    return static_cast<std::uint8_t>(
        format.has_nan() ? default_nan(format, {.nan = NanPolicy::cuda}) : 0);
  }
  Modes modes = {.saturate = options.saturate};
  switch (options.rounding) {
    case ElementRounding::ties_to_even: break;
    case ElementRounding::ties_to_away: modes.rounding = Rounding::ties_to_away; break;
    case ElementRounding::ties_to_zero: modes.rounding = Rounding::toward_zero; break;
    case ElementRounding::random:
      modes.rounding = Rounding::stochastic;
      modes.random_bits = 32;
      modes.random = options.random;
      break;
  }
  if (magnitude == 0x7F800000 && options.saturate) {
    const std::uint64_t sign = (bits >> 31) != 0 ? format.sign_mask() : 0;
    return static_cast<std::uint8_t>(sign | format.largest_finite());
  }
  const auto code = static_cast<std::uint8_t>(convert(format, kBinary32, bits, modes).bits);
  if (options.rounding != ElementRounding::ties_to_zero) return code;
  modes.rounding = Rounding::ties_to_away;
  const auto away = static_cast<std::uint8_t>(convert(format, kBinary32, bits, modes).bits);
  const bool tie = decode(element, code) + decode(element, away) == 2 * value;  // exact sums
  return tie ? code : away;
}

/// Bits of an element; a code is below 2^width_of(element).
HALFSCOPE_HD constexpr int width_of(Element element) {
  return element == Element::hifloat8 ? 8 : format_of(element).width;
}

inline constexpr std::array<std::string_view, 6> kElementNames = {"e2m1", "e2m3", "e3m2",
                                                                  "e4m3", "e5m2", "hifloat8"};
constexpr std::string_view name_of(Element element) {
  return kElementNames[static_cast<std::size_t>(element)];
}

}  // namespace halfscope::block
