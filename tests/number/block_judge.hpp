// SPDX-License-Identifier: Apache-2.0
// The judge of MX blocks: the OCP MX 1.0 definitions in exact rationals. It uses nothing of the
// library: elements are found by bisection among all values a format has.
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace block_judge {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

/// OCP MX 1.0, 5.3: fields of an element, and the code of its largest number.
struct Element {
  const char* name;
  int exponent_bits, fraction_bits, bias;
  unsigned last;

  unsigned sign() const { return 1u << (exponent_bits + fraction_bits); }
};

inline constexpr Element kElements[] = {
    {"e5m2", 5, 2, 15, 0x7B}, {"e4m3", 4, 3, 7, 0x7E}, {"e3m2", 3, 2, 3, 0x1F},
    {"e2m3", 2, 3, 1, 0x1F},  {"e2m1", 2, 1, 1, 0x07},
};

/// The magnitude of a code without sign; exact in binary64.
inline double magnitude(const Element& e, unsigned code) {
  const unsigned field = code >> e.fraction_bits;
  const unsigned fraction = code & ((1u << e.fraction_bits) - 1);
  if (field == 0) return std::ldexp(fraction, 1 - e.bias - e.fraction_bits);
  return std::ldexp((1u << e.fraction_bits) + fraction,
                    static_cast<int>(field) - e.bias - e.fraction_bits);
}

/// All magnitudes up to the largest, in order; the place is the code.
inline const std::vector<Rational>& magnitudes(const Element& e) {
  static const auto tables = [] {
    std::vector<std::vector<Rational>> all;
    for (const Element& row : kElements) {
      std::vector<Rational> one;
      for (unsigned code = 0; code <= row.last; ++code) one.emplace_back(magnitude(row, code));
      all.push_back(std::move(one));
    }
    return all;
  }();
  return tables[static_cast<std::size_t>(&e - kElements)];
}

inline Rational power_of_two(int k) {
  const Integer power = Integer(1) << (k < 0 ? -k : k);
  return k < 0 ? Rational(1, power) : Rational(power);
}

/// The largest k with 2^k <= x.
inline int floor_log2(const Rational& x) {
  int k = static_cast<int>(msb(numerator(x))) - static_cast<int>(msb(denominator(x)));
  while (power_of_two(k) > x) --k;
  while (power_of_two(k + 1) <= x) ++k;
  return k;
}

enum class Direction { ties_to_even, ties_to_away, toward_zero, upward, downward, stochastic };

struct How {
  Direction direction = Direction::ties_to_even;
  Rational threshold;  ///< stochastic: R / 2^r
};

/// x = lower + fraction units; is the next unit taken?
inline bool takes_upper(const Rational& fraction, bool lower_is_odd, bool negative,
                        const How& how) {
  const Rational half(1, 2);
  switch (how.direction) {
    case Direction::ties_to_even: return fraction > half || (fraction == half && lower_is_odd);
    case Direction::ties_to_away: return fraction >= half;
    case Direction::toward_zero: return false;
    case Direction::upward: return fraction > 0 && !negative;
    case Direction::downward: return fraction > 0 && negative;
    case Direction::stochastic: return fraction > how.threshold;
  }
  return false;
}

/// x > 0 rounded to p bits, exponent unbounded.
inline Rational to_precision(const Rational& x, int p, bool negative, const How& how) {
  const Rational unit = power_of_two(floor_log2(x) - (p - 1));
  const Rational scaled = x / unit;
  const Integer lower = numerator(scaled) / denominator(scaled);
  const bool up = takes_upper(scaled - Rational(lower), lower % 2 != 0, negative, how);
  return Rational(up ? lower + 1 : lower) * unit;
}

struct Answer {
  unsigned code;
  bool overflow = false, underflow = false, inexact = false;
};

/// (-1)^negative * x, x >= 0, in the element format: rounded, and clamped to its largest number.
inline Answer element(const Element& e, const Rational& x, bool negative, const How& how = {}) {
  const unsigned sign = negative ? e.sign() : 0;
  if (x == 0) return {sign};
  const std::vector<Rational>& all = magnitudes(e);
  const auto above = std::upper_bound(all.begin(), all.end(), x);
  const auto lower = static_cast<unsigned>(above - all.begin()) - 1;
  if (all[lower] == x) return {sign | lower};
  const Rational rounded = to_precision(x, e.fraction_bits + 1, negative, how);
  if (rounded > all.back()) return {sign | e.last, true, false, true};
  if (above == all.end()) return {sign | lower, false, false, true};
  const bool tiny = rounded < power_of_two(1 - e.bias);
  const Rational part = (x - all[lower]) / (*above - all[lower]);
  const bool up = takes_upper(part, lower % 2 != 0, negative, how);
  return {sign | (up ? lower + 1 : lower), false, tiny, true};
}

inline int clamped(int k) { return k < -127 ? -127 : k > 127 ? 127 : k; }

/// k of the scale 2^k for a largest magnitude A > 0.
/// MX 1.0, 6.3: the largest power of two <= A, over the largest power of two of the format.
inline int floor_exponent(const Element& e, const Rational& a) {
  return clamped(floor_log2(a) - floor_log2(Rational(magnitude(e, e.last))));
}

inline int round_even_exponent(const Element& e, const Rational& a) {
  return floor_exponent(e, to_precision(a, e.fraction_bits + 1, false, {}));
}

/// The least k in E8M0's range with A <= largest * 2^k.
inline int round_up_exponent(const Element& e, const Rational& a) {
  const Rational largest(magnitude(e, e.last));
  int k = clamped(floor_exponent(e, a) - 2);  // A / 2^k >= 2 largest, unless clamped
  while (k < 127 && a > largest * power_of_two(k)) ++k;
  return k;
}

}  // namespace block_judge
