// SPDX-License-Identifier: Apache-2.0
// Numbers from decimal and hexadecimal text, rounded once (IEEE 754-2019, 5.12); constexpr.
//
// Parsing to binary64 and then narrowing rounds twice, which is wrong next to a tie. Here the exact
// value of the text, an integer times a power of ten or two, is computed down to one sticky bit
// below all bits that any rounding needs, and round_pack rounds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/round.hpp"
#include "halfscope/number/wide_integer.hpp"

namespace halfscope {
namespace detail {

/// Reads a text from its front; case does not matter.
class Reader {
 public:
  constexpr explicit Reader(std::string_view text) : rest_(text) {}
  constexpr bool at_end() const { return rest_.empty(); }

  /// Removes `word`, given in lower case, from the front. Returns false if it is not there.
  constexpr bool take(std::string_view word) {
    if (rest_.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (lower(rest_[i]) != word[i]) return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }

  /// Removes a digit of `base` from the front and returns it, or -1 if there is none.
  constexpr int take_digit(int base) {
    if (rest_.empty()) return -1;
    const char c = lower(rest_.front());
    int digit = base;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit >= base) return -1;
    rest_.remove_prefix(1);
    return digit;
  }

 private:
  static constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::string_view rest_;
};

/// The value significand * 10^exponent, or slightly more if digits were dropped (`more`).
///
/// 256 digits are enough: rounding compares with multiples of 2^-182 below 2^129 (the ties of
/// formats within binary32's range, and stochastic rounding's 32 bits below their last place).
/// These have at most 221 digits, so a longer text differs in its first 256 digits or is larger.
struct DecimalDigits {
  static constexpr int kBase = 10;
  WideInteger significand;
  int count = 0;  ///< digits in `significand`
  std::int64_t exponent = 0;
  bool more = false;

  constexpr void push(int digit, bool after_point) {
    const bool kept = count < 256;
    if (kept && (count > 0 || digit != 0)) {
      significand.multiply_add(10, static_cast<std::uint32_t>(digit));
      ++count;
    }
    more |= !kept && digit != 0;
    exponent += (kept ? 0 : 1) - (after_point ? 1 : 0);
  }

  constexpr Sticky value(std::int64_t shift) const {
    if (count == 0) return {0, 0};
    const std::int64_t power = exponent + shift;
    // Far outside any format: the exact magnitude does not matter.
    if (power + count > 60) return {1, 1000};
    if (power + count < -100) return {1, -1000};
    WideInteger scaled = significand;
    bool inexact = more;
    if (power >= 0) {
      for (std::int64_t i = 0; i < power; ++i) scaled.multiply_add(10, 0);
      return scaled.sticky(inexact, 0);
    }
    // A limb for each 10^9 < 2^32 of the divisor, one for its rest, two for 64 quotient bits.
    const std::size_t limbs = static_cast<std::size_t>(-power) / 9 + 3;
    scaled.shift_left_limbs(limbs);
    for (std::int64_t i = 0; i > power; --i) inexact |= scaled.divide(10);
    return scaled.sticky(inexact, -32 * static_cast<int>(limbs));
  }
};

/// The value significand * 2^exponent, or slightly more if digits were dropped (`more`).
struct HexadecimalDigits {
  static constexpr int kBase = 16;
  std::uint64_t significand = 0;
  std::int64_t exponent = 0;
  bool more = false;

  constexpr void push(int digit, bool after_point) {
    const bool kept = significand >> 59 == 0;
    if (kept) significand = significand << 4 | static_cast<std::uint64_t>(digit);
    more |= !kept && digit != 0;
    exponent += (kept ? 0 : 4) - (after_point ? 4 : 0);
  }

  constexpr Sticky value(std::int64_t shift) const {
    const std::int64_t power = exponent + shift;
    if (significand == 0 || power > 1000) return {significand, 1000};
    if (power < -1000) return {1, -1000};
    return {significand << 1 | (more ? 1 : 0), static_cast<int>(power) - 1};
  }
};

/// Reads [sign] digits. Clamps to +-10^17, which no realistic number of mantissa digits can offset.
constexpr std::optional<std::int64_t> read_exponent(Reader& reader) {
  const bool negative = reader.take("-");
  if (!negative) reader.take("+");
  int digit = reader.take_digit(10);
  if (digit < 0) return std::nullopt;
  std::int64_t exponent = 0;
  for (; digit >= 0; digit = reader.take_digit(10)) {
    if (exponent < 10'000'000'000'000'000) exponent = exponent * 10 + digit;
  }
  return negative ? -exponent : exponent;
}

/// Reads digits with at most one point among them, then [marker exponent].
template <typename Digits>
constexpr std::optional<Sticky> read_digits(Reader& reader, std::string_view marker) {
  Digits digits;
  bool any = false;
  bool after_point = false;
  for (;;) {
    if (!after_point && reader.take(".")) {
      after_point = true;
      continue;
    }
    const int digit = reader.take_digit(Digits::kBase);
    if (digit < 0) break;
    any = true;
    digits.push(digit, after_point);
  }
  if (!any) return std::nullopt;
  if (!reader.take(marker)) return digits.value(0);
  const std::optional<std::int64_t> exponent = read_exponent(reader);
  if (!exponent) return std::nullopt;
  return digits.value(*exponent);
}

/// Reads what follows "nan" or "snan": nothing, or the payload (the fraction without the quiet bit)
/// in hexadecimal, "(0x1ff)".
constexpr std::optional<Rounded> read_nan(Format f, bool negative, bool signaling, Reader& reader) {
  const bool ieee = f.specials == Specials::ieee;
  const std::uint64_t quiet_bit = ieee ? std::uint64_t{1} << (f.fraction_bits() - 1) : 1;
  std::uint64_t payload = signaling ? 1 : 0;
  if (reader.take("(0x")) {
    int digit = reader.take_digit(16);
    if (digit < 0) return std::nullopt;
    for (payload = 0; digit >= 0; digit = reader.take_digit(16)) {
      payload = payload << 4 | static_cast<std::uint64_t>(digit);
      if (payload >= quiet_bit) return std::nullopt;
    }
    if (!reader.take(")")) return std::nullopt;
  }
  if (signaling && (!ieee || payload == 0)) return std::nullopt;
  if (!f.has_nan()) return Rounded{f.quiet_nan(), {.invalid = true}};
  const std::uint64_t magnitude = signaling ? f.infinity() : f.quiet_nan();
  return Rounded{(negative ? f.sign_mask() : 0) | magnitude | payload, {}};
}

constexpr std::optional<Rounded> read_number(Format f, bool negative, Reader& reader,
                                             const Modes& modes) {
  if (reader.take("infinity") || reader.take("inf")) {
    const std::uint64_t sign = negative ? kBinary32.sign_mask() : 0;
    return convert(f, kBinary32, sign | kBinary32.infinity(), modes);
  }
  if (reader.take("nan")) return read_nan(f, negative, false, reader);
  if (reader.take("snan")) return read_nan(f, negative, true, reader);
  const std::optional<Sticky> value = reader.take("0x")
                                          ? read_digits<HexadecimalDigits>(reader, "p")
                                          : read_digits<DecimalDigits>(reader, "e");
  if (!value) return std::nullopt;
  return round_pack(f, negative, value->significand, value->exponent, modes);
}

}  // namespace detail

/// Converts a text to a number, rounded once. The whole text must be one number, of any length;
/// otherwise the result is empty. No white space, no locale; letters in any case:
///
///     [+|-] digits[.digits][e[+|-]digits]         1.5   .5   5.   1e-400
///     [+|-] 0x digits[.digits][p[+|-]digits]      0x1.8p+3, in hexadecimal; the power of two in
///     decimal
///     [+|-] inf | infinity
///     [+|-] nan | nan(0xPAYLOAD) | snan | snan(0xPAYLOAD)
///
/// A NaN keeps its written sign and payload, whatever `modes.nan` is; too large a payload makes the
/// text invalid. In a format without NaN the result is the largest finite number, with `invalid`.
/// Throws std::invalid_argument for formats with more precision or range than binary32.
constexpr std::optional<Rounded> from_text(Format f, std::string_view text,
                                           const Modes& modes = {}) {
  if (f.precision > kBinary32.precision || f.emax > kBinary32.emax) {
    throw std::invalid_argument("from_text: the format must lie within binary32");
  }
  detail::Reader reader(text);
  const bool negative = reader.take("-");
  if (!negative) reader.take("+");
  const std::optional<Rounded> number = detail::read_number(f, negative, reader, modes);
  return reader.at_end() ? number : std::nullopt;
}

}  // namespace halfscope
