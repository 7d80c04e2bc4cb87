// SPDX-License-Identifier: Apache-2.0
// A judge of binary16 that is fast enough for all 2^32 pairs: exact values in binary64 and the
// processor's arithmetic. It shares nothing with the library, and is itself held to the oracle.
//
// Sums, differences and products of binary16 numbers are exact in binary64: sums are multiples of
// 2^-24 below 2^17, products have 22 digits. A quotient is not, but its binary64 rounding q lies
// where a / b lies with respect to every point m that matters, a number of at most 12 digits (a
// neighbour, the middle between two): with a = A 2^i and m b = M 2^k, M of at most 23 digits, a - m
// b is a multiple of the smaller of 2^i > 2^-11 a and 2^k > 2^-23 m b. So a / b is m, or differs
// from it by 2^-24 m and more, and q does not cross m.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fast {

enum class Direction { ties_to_even, ties_to_away, toward_zero, upward, downward, to_odd };
enum Flag : unsigned {
  kInexact = 1,
  kUnderflow = 2,
  kOverflow = 4,
  kDivideByZero = 8,
  kInvalid = 16
};

struct Result {
  unsigned bits;
  unsigned flags;  ///< tininess decided after rounding
};

inline constexpr unsigned kSign = 0x8000, kInfinity = 0x7C00, kLargest = 0x7BFF, kQuiet = 0x0200,
                          kDefaultNan = 0xFE00;

inline bool is_nan(unsigned a) { return (a & 0x7FFF) > kInfinity; }
inline bool is_infinite(unsigned a) { return (a & 0x7FFF) == kInfinity; }
inline bool is_zero(unsigned a) { return (a & 0x7FFF) == 0; }

/// Of every finite encoding.
inline const std::array<double, 1 << 16>& values() {
  static const std::array<double, 1 << 16> table = [] {
    std::array<double, 1 << 16> out{};
    for (unsigned a = 0; a < 1U << 16; ++a) {
      const int field = static_cast<int>(a >> 10 & 31);
      const double fraction = a & 0x3FF;
      const double magnitude =
          field == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, field - 25);
      out[a] = (a & kSign) != 0 ? -magnitude : magnitude;
    }
    return out;
  }();
  return table;
}

inline double value(unsigned a) { return values()[a]; }

/// 2^e, and the exponent of the leading bit: by the fields of a normal binary64.
inline double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}
inline int log2(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023; }

/// A magnitude between two binary16 numbers; found once for all directions.
struct Place {
  unsigned lower = 0;      ///< encoding of the number at or below; the one after it is lower + 1
  double rest = 0;         ///< the way to the next one, in [0, 1)
  bool subnormal = false;  ///< below 2^-14
  double wide_rest = 0;    ///< below 2^-14: the same way between numbers of 11 digits
  bool wide_top = false;   ///< ... and the one above is 2^-14
  bool wide_even = false;
};

/// x > 0. Scaling by powers of two and taking the integer part are exact.
inline Place place(double x) {
  Place out;
  const int e = log2(x);
  if (e > 15) {  // 2^16 and more
    out.lower = kInfinity;
    return out;
  }
  const int binade = e < -14 ? -14 : e;
  const double steps = x * power_of_two(10 - binade);
  const auto whole = static_cast<unsigned>(steps);
  out.rest = steps - whole;
  out.lower = whole + (static_cast<unsigned>(binade + 14) << 10);
  out.subnormal = e < -14;
  if (out.subnormal) {
    const double wide = x * power_of_two(10 - e);
    const auto wide_whole = static_cast<unsigned>(wide);
    out.wide_rest = wide - wide_whole;
    out.wide_top = e == -15 && wide_whole == 2047;
    out.wide_even = wide_whole % 2 == 0;
  }
  return out;
}

/// IEEE 754-2019, 4.3.
inline bool goes_up(Direction direction, double rest, bool lower_is_even, bool negative) {
  if (rest == 0) return false;
  switch (direction) {
    case Direction::ties_to_even: return rest > 0.5 || (rest == 0.5 && !lower_is_even);
    case Direction::ties_to_away: return rest >= 0.5;
    case Direction::toward_zero: return false;
    case Direction::upward: return !negative;
    case Direction::downward: return negative;
    case Direction::to_odd: return lower_is_even;
  }
  return false;
}

/// 7.4: is an infinity the result of an overflow?
inline bool overflows_to_infinity(Direction direction, bool negative) {
  switch (direction) {
    case Direction::ties_to_even:
    case Direction::ties_to_away: return true;
    case Direction::upward: return !negative;
    case Direction::downward: return negative;
    default: return false;
  }
}

inline Result rounded(const Place& x, bool negative, Direction direction) {
  const unsigned sign = negative ? kSign : 0;
  const unsigned magnitude =
      x.lower + (goes_up(direction, x.rest, x.lower % 2 == 0, negative) ? 1 : 0);
  if (magnitude >= kInfinity) {
    const bool infinite = overflows_to_infinity(direction, negative);
    return {sign | (infinite ? kInfinity : kLargest), kOverflow | kInexact};
  }
  if (x.rest == 0) return {sign | magnitude, 0};
  // 7.5: tiny unless 11 digits with unbounded exponent reach 2^-14.
  const bool tiny =
      x.subnormal && !(x.wide_top && goes_up(direction, x.wide_rest, x.wide_even, negative));
  return {sign | magnitude, kInexact | (tiny ? kUnderflow : 0U)};
}

/// A result before its direction is known.
struct Exact {
  enum class Is { bits, cancelled_zero, number } is = Is::bits;
  Result known = {};  ///< of `bits`, the same in every direction
  bool negative = false;
  Place place = {};
};

inline Exact known(unsigned bits, unsigned flags = 0) {
  return {.is = Exact::Is::bits, .known = {bits, flags}};
}

inline Exact number(double x) {
  return {.is = Exact::Is::number, .negative = x < 0, .place = place(std::fabs(x))};
}

inline Result in(Direction direction, const Exact& x) {
  switch (x.is) {
    case Exact::Is::bits: return x.known;
    case Exact::Is::cancelled_zero:  // 6.3
      return {direction == Direction::downward ? kSign : 0, 0};
    case Exact::Is::number: break;
  }
  return rounded(x.place, x.negative, direction);
}

/// 6.2 under x86's policy: the first NaN, quieted. One of the two is a NaN.
inline Exact nan_of(unsigned a, unsigned b) {
  const bool signaling = (is_nan(a) && (a & kQuiet) == 0) || (is_nan(b) && (b & kQuiet) == 0);
  return known((is_nan(a) ? a : b) | kQuiet, signaling ? kInvalid : 0U);
}

/// a + b, or a - b.
inline Exact sum(unsigned a, unsigned b, bool minus) {
  if (is_nan(a) || is_nan(b)) return nan_of(a, b);
  const unsigned c = minus ? b ^ kSign : b;
  if (is_infinite(a)) return is_infinite(c) && c != a ? known(kDefaultNan, kInvalid) : known(a);
  if (is_infinite(c)) return known(c);
  if (is_zero(a) && a == c) return known(a);
  const double x = value(a) + value(c);
  if (x == 0) return {.is = Exact::Is::cancelled_zero};
  return number(x);
}

inline Exact product(unsigned a, unsigned b) {
  if (is_nan(a) || is_nan(b)) return nan_of(a, b);
  const unsigned sign = (a ^ b) & kSign;
  if (is_infinite(a) || is_infinite(b)) {
    return is_zero(a) || is_zero(b) ? known(kDefaultNan, kInvalid) : known(sign | kInfinity);
  }
  if (is_zero(a) || is_zero(b)) return known(sign);
  return number(value(a) * value(b));
}

inline Exact quotient(unsigned a, unsigned b) {
  if (is_nan(a) || is_nan(b)) return nan_of(a, b);
  const unsigned sign = (a ^ b) & kSign;
  if (is_infinite(a))
    return is_infinite(b) ? known(kDefaultNan, kInvalid) : known(sign | kInfinity);
  if (is_infinite(b)) return known(sign);
  if (is_zero(b)) {
    return is_zero(a) ? known(kDefaultNan, kInvalid) : known(sign | kInfinity, kDivideByZero);
  }
  if (is_zero(a)) return known(sign);
  return number(value(a) / value(b));
}

/// 5.3.1, in units of 2^-24: integers of at most 40 bits.
inline Exact remainder(unsigned a, unsigned b) {
  if (is_nan(a) || is_nan(b)) return nan_of(a, b);
  if (is_infinite(a) || is_zero(b)) return known(kDefaultNan, kInvalid);
  if (is_infinite(b) || is_zero(a)) return known(a);
  const auto x = static_cast<std::int64_t>(std::fabs(value(a)) * 0x1p24);
  const auto y = static_cast<std::int64_t>(std::fabs(value(b)) * 0x1p24);
  const std::int64_t n = x / y;
  const std::int64_t rest = x % y;
  const bool next = 2 * rest > y || (2 * rest == y && n % 2 == 1);
  const std::int64_t r = next ? rest - y : rest;
  if (r == 0) return known(a & kSign);
  const double magnitude = static_cast<double>(r) * 0x1p-24;
  return number((a & kSign) != 0 ? -magnitude : magnitude);
}

}  // namespace fast
