// SPDX-License-Identifier: Apache-2.0
// The judge: rounding in exact rationals (Boost.Multiprecision), by definition and not by bits.
//
// It includes nothing of the library. It knows a format by its fields and bias (IEEE 754-2019, 3.4;
// OCP OFP8 1.0), finds the two encodings around a value by bisection over all encodings, and
// takes the flags from clause 7's definitions by rounding a second time with unbounded exponent.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace oracle {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

/// Sign, exponent field, trailing significand field, as the standards draw them.
struct Layout {
  std::string_view name;
  int exponent_bits;
  int fraction_bits;
  int bias;
  bool has_infinity;  ///< false: the top exponent field holds numbers, all ones is the only NaN

  constexpr int min_exponent() const { return 1 - bias; }
  constexpr std::uint64_t sign() const {
    return std::uint64_t{1} << (exponent_bits + fraction_bits);
  }
  /// The encoding above the largest finite magnitude: infinity, or E4M3's NaN.
  constexpr std::uint64_t after_last() const {
    const std::uint64_t all_ones = sign() - 1;
    return has_infinity ? all_ones >> fraction_bits << fraction_bits : all_ones;
  }
  constexpr std::uint64_t last() const { return after_last() - 1; }
};

inline constexpr Layout kLayouts[] = {
    {"binary16", 5, 10, 15, true},  {"bfloat16", 8, 7, 127, true},    {"tf32", 8, 10, 127, true},
    {"binary32", 8, 23, 127, true}, {"binary64", 11, 52, 1023, true}, {"e4m3", 4, 3, 7, false},
    {"e5m2", 5, 2, 15, true},
};

inline const Layout& layout(std::string_view name) {
  for (const Layout& row : kLayouts) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("oracle: no format named " + std::string(name));
}

/// significand * 2^quantum.
struct Dyadic {
  std::uint64_t significand;
  int quantum;
};

/// The magnitude an encoding stands for. The encoding after the last finite one stands for the
/// number that would come next if the exponent range went on.
inline Dyadic magnitude(const Layout& f, std::uint64_t code) {
  const std::uint64_t field = code >> f.fraction_bits;
  const std::uint64_t fraction = code - (field << f.fraction_bits);
  if (field == 0) return {fraction, f.min_exponent() - f.fraction_bits};
  const std::uint64_t leading_one = std::uint64_t{1} << f.fraction_bits;
  return {leading_one + fraction, static_cast<int>(field) - f.bias - f.fraction_bits};
}

inline Rational power_of_two(int exponent) {
  const Integer power = Integer(1) << (exponent < 0 ? -exponent : exponent);
  return exponent < 0 ? Rational(1, power) : Rational(power);
}

inline Rational rational(const Dyadic& x) {
  return Rational(x.significand) * power_of_two(x.quantum);
}

inline Rational value(const Layout& f, std::uint64_t code) { return rational(magnitude(f, code)); }

/// < 0, 0, > 0 as n/d is below, at, above x.
inline int compare(const Integer& n, const Integer& d, const Dyadic& x) {
  Integer right = d * x.significand;
  if (x.quantum >= 0) return n.compare(right <<= x.quantum);
  Integer left = n;
  return (left <<= -x.quantum).compare(right);
}

/// Where a value lies between two neighbours.
enum class Where { exact, below_half, half, above_half };

enum class Direction { ties_to_even, ties_to_away, toward_zero, upward, downward, to_odd };

/// IEEE 754-2019, 4.3: is the neighbour of larger magnitude taken?
inline bool takes_upper(Where where, bool lower_is_even, bool negative, Direction direction) {
  if (where == Where::exact) return false;
  switch (direction) {
    case Direction::ties_to_even:
      return where == Where::above_half || (where == Where::half && !lower_is_even);
    case Direction::ties_to_away: return where != Where::below_half;
    case Direction::toward_zero: return false;
    case Direction::upward: return !negative;
    case Direction::downward: return negative;
    case Direction::to_odd: return lower_is_even;
  }
  throw std::logic_error("oracle: no such direction");
}

/// All that rounding a magnitude in any direction needs: found once, used for all of them.
struct Located {
  std::uint64_t lower;  ///< encoding of the largest finite magnitude <= x
  Where where;          ///< x between `lower` and the encoding after it
  bool tiny_before;     ///< 0 < x < 2^emin
  // The same with p digits and unbounded exponent: the two candidates, and what clause 7 asks of
  // each.
  Where unbounded_where;
  bool unbounded_even;              ///< the lower candidate's last digit is 0
  bool lower_tiny, upper_tiny;      ///< candidate < 2^emin
  bool lower_beyond, upper_beyond;  ///< candidate > the largest finite magnitude
};

namespace detail {

inline Where position(int against_lower, int against_middle) {
  if (against_lower == 0) return Where::exact;
  return against_middle < 0    ? Where::below_half
         : against_middle == 0 ? Where::half
                               : Where::above_half;
}

inline int floor_log2(const Integer& n, const Integer& d) {
  int e = static_cast<int>(msb(n)) - static_cast<int>(msb(d));
  return compare(n, d, {1, e}) < 0 ? e - 1 : e;
}

inline void locate_unbounded(const Layout& f, const Integer& n, const Integer& d, Located& out) {
  const int quantum = floor_log2(n, d) - f.fraction_bits;
  const Integer scaled = quantum < 0 ? Integer(n << -quantum) : n;
  const Integer unit = quantum > 0 ? Integer(d << quantum) : d;
  const auto lower = static_cast<std::uint64_t>(Integer(scaled / unit));
  const Integer rest = scaled % unit;
  out.unbounded_where = position(rest.is_zero() ? 0 : 1, Integer(rest * 2).compare(unit));
  out.unbounded_even = lower % 2 == 0;
  const auto compare_to = [&](std::uint64_t candidate, const Dyadic& limit) {
    const Rational c = rational({candidate, quantum});
    return c.compare(rational(limit));
  };
  const Dyadic smallest_normal = {1, f.min_exponent()};
  const Dyadic largest = magnitude(f, f.last());
  out.lower_tiny = compare_to(lower, smallest_normal) < 0;
  out.upper_tiny = compare_to(lower + 1, smallest_normal) < 0;
  out.lower_beyond = compare_to(lower, largest) > 0;
  out.upper_beyond = compare_to(lower + 1, largest) > 0;
}

}  // namespace detail

inline Located locate(const Layout& f, const Rational& x) {
  const Integer n = numerator(x);
  const Integer d = denominator(x);
  if (n <= 0) throw std::invalid_argument("oracle: a magnitude is positive");
  std::uint64_t low = 0;
  std::uint64_t high = f.after_last();  // value(low) <= x, and x < value(high) unless x is beyond
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (compare(n, d, magnitude(f, middle)) >= 0 ? low : high) = middle;
  }
  const Dyadic lower = magnitude(f, low);
  const Dyadic half_way = {2 * lower.significand + 1, lower.quantum - 1};
  Located out{};
  out.lower = low;
  out.where = detail::position(compare(n, d, lower), compare(n, d, half_way));
  out.tiny_before = compare(n, d, {1, f.min_exponent()}) < 0;
  detail::locate_unbounded(f, n, d, out);
  return out;
}

struct Answer {
  std::uint64_t bits;
  bool inexact = false;
  bool overflow = false;
  bool underflow_before = false;  ///< tiny before rounding, and inexact
  bool underflow_after = false;   ///< tiny after rounding, and inexact
};

/// IEEE 754-2019, 7.4: what stands in place of a magnitude that is too large.
inline std::uint64_t overflowed(const Layout& f, bool negative, Direction direction) {
  switch (direction) {
    case Direction::ties_to_even:
    case Direction::ties_to_away: return f.after_last();
    case Direction::toward_zero:
    case Direction::to_odd: return f.last();
    case Direction::upward: return negative ? f.last() : f.after_last();
    case Direction::downward: return negative ? f.after_last() : f.last();
  }
  throw std::logic_error("oracle: no such direction");
}

inline Answer decide(const Layout& f, const Located& x, bool negative, Direction direction) {
  const std::uint64_t sign = negative ? f.sign() : 0;
  const bool up = takes_upper(x.unbounded_where, x.unbounded_even, negative, direction);
  if (up ? x.upper_beyond : x.lower_beyond) {
    return {.bits = sign | overflowed(f, negative, direction), .inexact = true, .overflow = true};
  }
  const bool inexact = x.where != Where::exact;
  const bool upper = takes_upper(x.where, x.lower % 2 == 0, negative, direction);
  return {.bits = sign | (x.lower + (upper ? 1 : 0)),
          .inexact = inexact,
          .underflow_before = inexact && x.tiny_before,
          .underflow_after = inexact && (up ? x.upper_tiny : x.lower_tiny)};
}

/// (-1)^negative * x rounded to a format, x > 0.
inline Answer round(const Layout& f, const Rational& x, bool negative = false,
                    Direction direction = Direction::ties_to_even) {
  return decide(f, locate(f, x), negative, direction);
}

/// What rounding to nearest, ties to even, makes of a finite nonzero value.
enum class Class { zero, subnormal, normal, overflow };

inline Class class_of(const Layout& f, const Rational& x) {
  const Answer a = round(f, x);
  if (a.overflow) return Class::overflow;
  if (a.bits == 0) return Class::zero;
  return a.bits >> f.fraction_bits == 0 ? Class::subnormal : Class::normal;
}

}  // namespace oracle
