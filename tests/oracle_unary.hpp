// SPDX-License-Identifier: Apache-2.0
// The judge of integers and neighbours: IEEE 754-2019, 5.3.1 (roundToIntegral, nextUp), 5.3.3
// (scaleB, logB), 5.4.1 (integers to and from floating point), 5.8 and 5.9.
#pragma once

#include "oracle_outcome.hpp"

namespace oracle {

/// A magnitude between two consecutive integers.
struct BetweenIntegers {
  Integer lower;
  Place place;
};

inline BetweenIntegers between_integers(const Dyadic& x, bool with_ceiling = false) {
  const Integer s = x.significand;
  if (x.quantum >= 0) return {s << x.quantum, {}};
  const Integer lower = s >> -x.quantum;
  return {lower, detail::place_of(exactly(x), static_cast<std::uint64_t>(lower), 0, with_ceiling)};
}

inline Integer chosen_integer(const BetweenIntegers& x, bool negative, const Rule& rule) {
  return takes_upper(x.place, x.lower % 2 == 0, negative, rule) ? Integer(x.lower + 1) : x.lower;
}

/// 5.9. Zero and infinity are kept; a result of zero has the sign of the operand. An integer above
/// the largest number (FP6 E2M3: 8, from 7.5) overflows like any other result.
inline Result round_to_integral(const Layout& f, const Operand& a, const Modes& modes,
                                bool raise_inexact) {
  if (const auto nan = propagated({&a})) return finish(f, *nan, modes);
  if (a.kind == Kind::infinity) return finish(f, infinite(a.negative), modes);
  if (a.kind == Kind::zero) return finish(f, zero(a.negative), modes);
  const bool stochastic = modes.rule.direction == Direction::stochastic;
  const BetweenIntegers x = between_integers(a.magnitude, stochastic);
  const Integer n = chosen_integer(x, a.negative, modes.rule);
  const Outcome out = n.is_zero() ? zero(a.negative) : number(f, a.negative, Quotient{n, 1, 0});
  Result result = finish(f, out, modes);
  if (raise_inexact && x.place.where != Where::exact) result.flags.inexact = true;
  return result;
}

struct IntegerRange {
  int bits;
  bool is_signed;
  Integer lowest() const { return is_signed ? Integer(-(Integer(1) << (bits - 1))) : Integer(0); }
  Integer highest() const { return (Integer(1) << (bits - (is_signed ? 1 : 0))) - 1; }
  std::uint64_t encoded(const Integer& n) const {  // two's complement
    return static_cast<std::uint64_t>(n < 0 ? Integer(n + (Integer(1) << bits)) : n);
  }
};

/// What stands in place of an integer that does not fit (5.8 leaves it open).
inline std::uint64_t no_integer(const IntegerRange& range, const Operand& a, NanRule rule) {
  const std::uint64_t saturated = range.encoded(a.negative ? range.lowest() : range.highest());
  switch (rule) {
    case NanRule::x86:  // the integer indefinite
      return range.encoded(range.is_signed ? range.lowest() : range.highest());
    case NanRule::canonical:  // RISC-V, fcvt
      return a.is_nan() ? range.encoded(range.highest()) : saturated;
    case NanRule::cuda:
      if (!a.is_nan()) return saturated;
      return range.bits == 64 ? std::uint64_t{1} << 63 : 0;
  }
  throw std::logic_error("oracle: no such NaN rule");
}

inline Result to_integer(const IntegerRange& range, const Operand& a, const Modes& modes,
                         bool raise_inexact) {
  if (a.kind == Kind::zero) return {0, {}};
  const Result wrong = {no_integer(range, a, modes.nan), {.invalid = true}};
  if (!a.is_number()) return wrong;
  const bool stochastic = modes.rule.direction == Direction::stochastic;
  const BetweenIntegers x = between_integers(a.magnitude, stochastic);
  Integer n = chosen_integer(x, a.negative, modes.rule);
  if (a.negative) n = -n;
  if (n < range.lowest() || n > range.highest()) return wrong;
  return {range.encoded(n), {.inexact = raise_inexact && x.place.where != Where::exact}};
}

/// A zero is positive (5.4.1).
inline Outcome from_integer(const Layout& f, const IntegerRange& range, std::uint64_t bits,
                            Precise precise = {}) {
  Integer n = bits;
  if (range.bits == 32) n &= 0xFFFFFFFFU;
  if (range.is_signed && n > range.highest()) n -= Integer(1) << range.bits;
  if (n.is_zero()) return zero(false);
  return number(f, n < 0, Quotient{abs(n), 1, 0}, precise);
}

/// The least number of the format that compares greater (5.3.1). Quiet but for signaling NaNs.
inline Outcome next_up(const Layout& f, const Operand& a) {
  if (const auto nan = propagated({&a})) return *nan;
  const auto number_of = [&](bool negative, std::uint64_t code) {
    return number(f, negative, exactly(magnitude(f, code)));
  };
  switch (a.kind) {
    case Kind::infinity: return a.negative ? number_of(true, f.last()) : infinite(false);
    case Kind::zero: return number_of(false, 1);
    default: break;
  }
  if (a.negative) return a.code == 1 ? zero(true) : number_of(true, a.code - 1);
  return a.code == f.last() ? infinite(false) : number_of(false, a.code + 1);
}

/// -nextUp(-x), 5.3.1; a NaN keeps its sign.
inline Outcome next_down(const Layout& f, const Operand& a) {
  if (const auto nan = propagated({&a})) return *nan;
  Operand minus = a;
  minus.negative = !a.negative;
  Outcome out = next_up(f, minus);
  out.negative = !out.negative;
  return out;
}

inline Outcome scale_b(const Layout& f, const Operand& a, std::int64_t n, Precise precise = {}) {
  if (const auto nan = propagated({&a})) return *nan;
  if (a.kind == Kind::infinity) return infinite(a.negative);
  if (a.kind == Kind::zero) return zero(a.negative);
  const std::int64_t far = 5000;  // beyond every format, whatever the operand
  Quotient x = exactly(a.magnitude);
  x.scale += static_cast<int>(std::clamp(n, -far, far));
  return number(f, a.negative, x, precise);
}

inline Outcome log_b(const Layout& f, const Operand& a, Precise precise = {}) {
  if (const auto nan = propagated({&a})) return *nan;
  if (a.kind == Kind::infinity) return infinite(false);
  if (a.kind == Kind::zero) {
    Outcome out = infinite(true);
    out.divide_by_zero = true;  // 7.3
    return out;
  }
  const int e = exactly(a.magnitude).log2();
  if (e == 0) return zero(false);
  return number(f, e < 0, Quotient{e < 0 ? -e : e, 1, 0}, precise);
}

}  // namespace oracle
