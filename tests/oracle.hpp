// SPDX-License-Identifier: Apache-2.0
// The judge: rounding in exact rationals (Boost.Multiprecision), by definition and not by bits.
//
// It includes nothing of the library. It knows a format by its fields and bias (IEEE 754-2019, 3.4;
// OCP OFP8 1.0; OCP MX 1.0), finds the two encodings around a value by bisection, and takes the
// flags from clause 7's definitions by rounding a second time with unbounded exponent.
// A value is located once; then every direction is decided from where it lies.
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace oracle {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;

/// What the encodings with the top exponent field stand for.
enum class Top {
  infinity_and_nan,
  one_nan,  ///< numbers, and NaN where all bits are ones
  numbers
};

/// Sign, exponent field, trailing significand field, as the standards draw them.
struct Layout {
  std::string_view name;
  int exponent_bits;
  int fraction_bits;
  int bias;
  Top top;

  constexpr int width() const { return 1 + exponent_bits + fraction_bits; }
  constexpr int min_exponent() const { return 1 - bias; }
  constexpr std::uint64_t sign() const {
    return std::uint64_t{1} << (exponent_bits + fraction_bits);
  }
  /// The largest finite magnitude.
  constexpr std::uint64_t last() const {
    const std::uint64_t all_ones = sign() - 1;
    if (top == Top::numbers) return all_ones;
    return (top == Top::one_nan ? all_ones : all_ones >> fraction_bits << fraction_bits) - 1;
  }
  /// What comes next: infinity, E4M3's NaN, or nothing that `sign()` leaves room for.
  constexpr std::uint64_t after_last() const { return last() + 1; }
  /// What stands for an infinity: E4M3's NaN (OFP8 1.0), the largest number of FP6 and FP4.
  constexpr std::uint64_t infinity() const { return top == Top::numbers ? last() : after_last(); }
};

inline constexpr Layout kLayouts[] = {
    {"binary16", 5, 10, 15, Top::infinity_and_nan},
    {"bfloat16", 8, 7, 127, Top::infinity_and_nan},
    {"tf32", 8, 10, 127, Top::infinity_and_nan},
    {"binary32", 8, 23, 127, Top::infinity_and_nan},
    {"binary64", 11, 52, 1023, Top::infinity_and_nan},
    {"e4m3", 4, 3, 7, Top::one_nan},
    {"e5m2", 5, 2, 15, Top::infinity_and_nan},
    {"e3m2", 3, 2, 3, Top::numbers},
    {"e2m3", 2, 3, 1, Top::numbers},
    {"e2m1", 2, 1, 1, Top::numbers},
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
  Integer power = 1;
  power <<= exponent < 0 ? -exponent : exponent;
  return exponent < 0 ? Rational(1, power) : Rational(power);
}

inline Rational rational(const Dyadic& x) {
  return Rational(x.significand) * power_of_two(x.quantum);
}

inline Rational value(const Layout& f, std::uint64_t code) { return rational(magnitude(f, code)); }

/// A positive rational, n / d * 2^scale.
struct Quotient {
  Integer n;
  Integer d = 1;
  int scale = 0;

  /// < 0, 0, > 0 as this is below, at, above significand * 2^quantum.
  int against(const Integer& significand, int quantum) const {
    const int shift = scale - quantum;
    const Integer right = d * significand;
    if (shift >= 0) return Integer(n << shift).compare(right);
    return n.compare(Integer(right << -shift));
  }
  /// Exponent of the leading bit.
  int log2() const {
    const int e = static_cast<int>(msb(n)) - static_cast<int>(msb(d)) + scale;
    return against(1, e) < 0 ? e - 1 : e;
  }
};

inline Quotient exactly(const Dyadic& x) { return {x.significand, 1, x.quantum}; }

/// The square root of a positive rational: known by comparing squares, never computed.
struct Root {
  Quotient square;

  int against(const Integer& significand, int quantum) const {
    return square.against(significand * significand, 2 * quantum);
  }
  int log2() const {
    const int e = square.log2();
    return (e - (e % 2 != 0 && e < 0 ? 1 : 0)) / 2;  // floor
  }
};

/// Where a value lies between two neighbours.
enum class Where { exact, below_half, half, above_half };

enum class Direction {
  ties_to_even,
  ties_to_away,
  toward_zero,
  upward,
  downward,
  to_odd,
  stochastic
};

/// A direction; if stochastic, with R and the number of its bits.
struct Rule {
  Direction direction;
  std::uint32_t random = 0;
  int random_bits = 32;

  constexpr Rule(Direction d, std::uint32_t r = 0, int bits = 32)  // NOLINT: a Direction is a Rule
      : direction(d), random(r), random_bits(bits) {}
};

/// A place between two neighbours. `ceiling` is the way from the lower to the upper, in units of
/// 2^-32 and rounded up; found only for those who round stochastically.
struct Place {
  Where where = Where::exact;
  std::uint64_t ceiling = 0;
};

/// discarded fraction > R / 2^r. For an integer R: fraction * 2^r > R if and only if its ceiling
/// is; and the ceiling of x / 2^k is that of ceiling(x) / 2^k.
inline bool exceeds_random(const Place& place, const Rule& rule) {
  const int dropped = 32 - rule.random_bits;
  const std::uint64_t round_up = (std::uint64_t{1} << dropped) - 1;
  return (place.ceiling + round_up) >> dropped > rule.random;
}

/// IEEE 754-2019, 4.3: is the neighbour of larger magnitude taken?
inline bool takes_upper(const Place& place, bool lower_is_even, bool negative, const Rule& rule) {
  const Where where = place.where;
  if (where == Where::exact) return false;
  switch (rule.direction) {
    case Direction::ties_to_even:
      return where == Where::above_half || (where == Where::half && !lower_is_even);
    case Direction::ties_to_away: return where != Where::below_half;
    case Direction::toward_zero: return false;
    case Direction::upward: return !negative;
    case Direction::downward: return negative;
    case Direction::to_odd: return lower_is_even;
    case Direction::stochastic: return exceeds_random(place, rule);
  }
  throw std::logic_error("oracle: no such direction");
}

/// All that rounding a magnitude in any direction needs: found once, used for all of them.
struct Located {
  std::uint64_t lower;  ///< encoding of the largest finite magnitude <= x
  Place place;          ///< x between `lower` and the encoding after it
  bool tiny_before;     ///< 0 < x < 2^emin
  // The same with p digits and unbounded exponent: the two candidates, and what clause 7 asks of
  // each.
  Place unbounded;
  bool unbounded_even;              ///< the lower candidate's last digit is 0
  bool lower_tiny, upper_tiny;      ///< candidate < 2^emin
  bool lower_beyond, upper_beyond;  ///< candidate > the largest finite magnitude
};

namespace detail {

/// x between s and s + 1, in units of 2^quantum.
template <typename Magnitude>
Place place_of(const Magnitude& x, std::uint64_t s, int quantum, bool with_ceiling) {
  const int against_lower = x.against(s, quantum);
  if (against_lower == 0) return {};
  const int against_middle = x.against(Integer(s) * 2 + 1, quantum - 1);
  Place place = {against_middle < 0    ? Where::below_half
                 : against_middle == 0 ? Where::half
                                       : Where::above_half};
  if (!with_ceiling) return place;
  std::uint64_t below = 0;  // lower + below / 2^32 < x <= lower + ceiling / 2^32
  place.ceiling = std::uint64_t{1} << 32;
  while (place.ceiling - below > 1) {
    const std::uint64_t middle = below + (place.ceiling - below) / 2;
    const Integer significand = (Integer(s) << 32) + middle;
    (x.against(significand, quantum - 32) > 0 ? below : place.ceiling) = middle;
  }
  return place;
}

/// Encoding of the largest finite magnitude <= x. The leading bit narrows the search to a binade;
/// the last line holds the result to its definition.
template <typename Magnitude>
std::uint64_t floor_code(const Layout& f, const Magnitude& x, int log2) {
  const auto start_of_binade = [&](int e) {
    if (e < f.min_exponent()) return std::uint64_t{0};
    const int field = std::min(e + f.bias, 1 << f.exponent_bits);
    return std::min(static_cast<std::uint64_t>(field) << f.fraction_bits, f.after_last());
  };
  std::uint64_t low = std::min(start_of_binade(log2), f.last());
  std::uint64_t high = std::max(start_of_binade(log2 + 1), std::uint64_t{1} << f.fraction_bits);
  high = std::min(high, f.after_last());
  const auto against = [&](std::uint64_t code) {
    const Dyadic candidate = magnitude(f, code);
    return x.against(candidate.significand, candidate.quantum);
  };
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (against(middle) >= 0 ? low : high) = middle;
  }
  if (against(low) < 0 || (low != f.last() && against(low + 1) >= 0)) {
    throw std::logic_error("oracle: lost a value");
  }
  return low;
}

/// Largest p-digit significand s with s * 2^quantum <= x, where 2^(p - 1 + quantum) <= x < twice
/// it.
template <typename Magnitude>
std::uint64_t floor_significand(const Layout& f, const Magnitude& x, int quantum) {
  std::uint64_t low = std::uint64_t{1} << f.fraction_bits;
  std::uint64_t high = 2 * low;
  if (x.against(low, quantum) < 0 || x.against(high, quantum) >= 0) {
    throw std::logic_error("oracle: lost a binade");
  }
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (x.against(middle, quantum) >= 0 ? low : high) = middle;
  }
  return low;
}

template <typename Magnitude>
void locate_unbounded(const Layout& f, const Magnitude& x, int quantum, bool with_ceiling,
                      Located& out) {
  const std::uint64_t lower = floor_significand(f, x, quantum);
  const Dyadic largest = magnitude(f, f.last());
  const auto candidate = [&](std::uint64_t s) { return exactly({s, quantum}); };
  out.unbounded = place_of(x, lower, quantum, with_ceiling);
  out.unbounded_even = lower % 2 == 0;
  out.lower_tiny = candidate(lower).against(1, f.min_exponent()) < 0;
  out.upper_tiny = candidate(lower + 1).against(1, f.min_exponent()) < 0;
  out.lower_beyond = candidate(lower).against(largest.significand, largest.quantum) > 0;
  out.upper_beyond = candidate(lower + 1).against(largest.significand, largest.quantum) > 0;
}

}  // namespace detail

/// x > 0, a Quotient or a Root. `with_ceiling`: also what stochastic rounding needs.
template <typename Magnitude>
Located locate(const Layout& f, const Magnitude& x, bool with_ceiling = false) {
  const int log2 = x.log2();
  Located out{};
  out.lower = detail::floor_code(f, x, log2);
  const Dyadic lower = magnitude(f, out.lower);
  out.place = detail::place_of(x, lower.significand, lower.quantum, with_ceiling);
  out.tiny_before = x.against(1, f.min_exponent()) < 0;
  if (!out.tiny_before && out.lower < f.last()) {  // both candidates are numbers of the format
    out.unbounded = out.place;
    out.unbounded_even = lower.significand % 2 == 0;
  } else {
    detail::locate_unbounded(f, x, log2 - f.fraction_bits, with_ceiling, out);
  }
  return out;
}

inline Located locate(const Layout& f, const Rational& x) {
  if (x <= 0) throw std::invalid_argument("oracle: a magnitude is positive");
  return locate(f, Quotient{numerator(x), denominator(x), 0});
}

struct Answer {
  std::uint64_t bits;
  bool inexact = false;
  bool overflow = false;
  bool tiny_before = false;  ///< tiny, decided before rounding
  bool tiny_after = false;   ///< tiny, decided after rounding

  bool underflow_before() const { return tiny_before && inexact; }
  bool underflow_after() const { return tiny_after && inexact; }
};

/// IEEE 754-2019, 7.4: what stands in place of a magnitude that is too large.
inline std::uint64_t overflowed(const Layout& f, bool negative, Direction direction) {
  switch (direction) {
    case Direction::ties_to_even:
    case Direction::ties_to_away:
    case Direction::stochastic: return f.infinity();
    case Direction::toward_zero:
    case Direction::to_odd: return f.last();
    case Direction::upward: return negative ? f.last() : f.infinity();
    case Direction::downward: return negative ? f.infinity() : f.last();
  }
  throw std::logic_error("oracle: no such direction");
}

inline Answer decide(const Layout& f, const Located& x, bool negative, const Rule& rule) {
  const std::uint64_t sign = negative ? f.sign() : 0;
  const bool up = takes_upper(x.unbounded, x.unbounded_even, negative, rule);
  if (up ? x.upper_beyond : x.lower_beyond) {
    const std::uint64_t bits = sign | overflowed(f, negative, rule.direction);
    return {.bits = bits, .inexact = true, .overflow = true};
  }
  const bool upper = takes_upper(x.place, x.lower % 2 == 0, negative, rule);
  return {.bits = sign | (x.lower + (upper ? 1 : 0)),
          .inexact = x.place.where != Where::exact,
          .tiny_before = x.tiny_before,
          .tiny_after = up ? x.upper_tiny : x.lower_tiny};
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
