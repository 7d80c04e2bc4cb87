// SPDX-License-Identifier: Apache-2.0
// The judge of text: what a text says as an exact rational, exact decimals of dyadic numbers, and
// the shortest decimal by its definition. Shares no code with the library.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/number/format.hpp"
#include "number/samples.hpp"
#include "oracle.hpp"

namespace text_judge {

using oracle::Integer;
using oracle::Rational;

inline Integer power_of(int base, std::int64_t exponent) {
  return pow(Integer(base), static_cast<unsigned>(exponent));
}

/// The magnitude written in "12.5e-3" or "0x1.8p+3"; no sign.
inline Rational value_of(const std::string& text) {
  const bool hex = text.rfind("0x", 0) == 0;
  const std::size_t marker = std::min(text.find(hex ? 'p' : 'e'), text.size());
  std::string digits = text.substr(hex ? 2 : 0, marker - (hex ? 2 : 0));
  std::int64_t exponent = marker == text.size() ? 0 : std::stoll(text.substr(marker + 1));
  const std::size_t point = digits.find('.');
  if (point != std::string::npos) {
    exponent -= static_cast<std::int64_t>(digits.size() - point - 1) * (hex ? 4 : 1);
    digits.erase(point, 1);
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const Integer integer((hex ? "0x" : "") + digits);
  const Integer scale = power_of(hex ? 2 : 10, exponent < 0 ? -exponent : exponent);
  return exponent < 0 ? Rational(integer, scale) : Rational(integer * scale);
}

/// integer * 10^exponent.
struct Decimal {
  Integer integer;
  std::int64_t exponent;

  std::string text() const { return fmt::format("{}e{}", integer.str(), exponent); }
};

/// significand * 2^quantum in decimal, to the last digit: 2^-n = 5^n / 10^n.
inline Decimal exact_decimal(const Integer& significand, int quantum) {
  if (quantum >= 0) return {significand << quantum, 0};
  return {significand * power_of(5, -quantum), quantum};
}

/// The number and its neighbours `digits` places further on, 1 apart there: what a text that is a
/// little off looks like.
inline Decimal nudged(const Decimal& x, int digits, int by) {
  return {x.integer * power_of(10, digits) + by, x.exponent - digits};
}

inline std::string written(const Integer& integer, std::int64_t exponent, const Rational& x) {
  const std::string digits = integer.str();
  const auto count = static_cast<std::int64_t>(digits.size());
  const std::int64_t leading = exponent + count - 1;  // power of ten of the first digit
  std::string scientific = digits.substr(0, 1);
  if (count > 1) scientific += "." + digits.substr(1);
  scientific += fmt::format("e{}{:02}", leading < 0 ? '-' : '+', leading < 0 ? -leading : leading);
  std::string fixed;
  if (exponent >= 0) {
    fixed = digits + std::string(static_cast<std::size_t>(exponent), '0');
  } else if (leading >= 0) {
    fixed = digits;
    fixed.insert(static_cast<std::size_t>(leading) + 1, ".");
  } else {
    fixed = "0." + std::string(static_cast<std::size_t>(-leading - 1), '0') + digits;
  }
  if (fixed.size() > scientific.size()) return scientific;
  return exponent >= 0 ? Integer(numerator(x)).str() : fixed;  // a whole number in its own digits
}

/// The shortest decimal for the positive encoding `code`, written out. Of all multiples of powers
/// of ten that lie within half an ulp of the value x (half an ulp itself where ties to even would
/// come back), those with fewest digits; of those the nearest; of two the one with an even digit.
inline std::string shortest(const oracle::Layout& f, std::uint64_t code) {
  const Rational x = oracle::value(f, code);
  const Rational low = (oracle::value(f, code - 1) + x) / 2;
  const Rational high = (x + oracle::value(f, code + 1)) / 2;
  const bool closed = code % 2 == 0;
  const auto inside = [&](const Rational& y) {
    return (low < y && y < high) || (closed && (y == low || y == high));
  };
  std::optional<std::pair<Integer, std::int64_t>> best;
  std::size_t fewest = 0;
  Rational nearest;
  const auto offer = [&](const Integer& n, std::int64_t k, const Rational& unit) {
    const Rational y = n * unit;
    if (n <= 0 || !inside(y)) return;
    const std::size_t digits = n.str().size();
    const Rational distance = abs(y - x);
    const bool better = !best || digits < fewest || (digits == fewest && distance < nearest) ||
                        (digits == fewest && distance == nearest && n % 2 == 0);
    if (!better) return;
    best = {n, k};
    fewest = digits;
    nearest = distance;
  };
  // From a power of ten above x down, to one place beyond the first where there is any: of 9e1 and
  // 1e2 both have one digit.
  const auto length = [](const Integer& n) { return static_cast<std::int64_t>(n.str().size()); };
  std::int64_t last = -1000;
  for (std::int64_t k = length(numerator(x)) - length(denominator(x)) + 1; k >= last; --k) {
    const Rational unit = k < 0 ? Rational(1, power_of(10, -k)) : Rational(power_of(10, k));
    const Rational scaled = x / unit;
    const Integer below = Integer(numerator(scaled) / denominator(scaled));
    offer(below, k, unit);
    offer(below + 1, k, unit);
    if (best && last == -1000) last = k - 1;
  }
  return written(best->first, best->second, x);
}

/// Positive nonzero encodings: all of formats of up to 16 bits; of wider ones every exponent with
/// structured fractions.
inline std::vector<std::uint64_t> encodings(const halfscope::Format& f) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t code = 1; f.width <= 16 && code <= f.largest_finite(); ++code) {
    out.push_back(code);
  }
  if (!out.empty()) return out;
  for (const std::uint64_t fraction : samples::fractions(f)) {
    for (std::uint64_t code = fraction; code <= f.largest_finite();
         code += std::uint64_t{1} << f.fraction_bits()) {
      if (code != 0) out.push_back(code);
    }
  }
  return out;
}

}  // namespace text_judge
