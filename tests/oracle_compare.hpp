// SPDX-License-Identifier: Apache-2.0
// The judge of IEEE 754-2019, 5.5.1 (sign bits), 5.7.2 (classes), 5.10 (totalOrder), 5.11
// (comparisons), 9.6 (minimum, maximum), and of 754-2008, 5.3.1 (minNum, maxNum).
#pragma once

#include "oracle_outcome.hpp"

namespace oracle {

enum class Relation { less, equal, greater, unordered };

inline int order_of_magnitudes(const Operand& a, const Operand& b) {
  const auto height = [](const Operand& x) {
    return x.kind == Kind::infinity ? 2 : x.kind == Kind::finite ? 1 : 0;
  };
  if (height(a) != height(b)) return height(a) - height(b);
  if (height(a) != 1) return 0;
  return exactly(a.magnitude).against(b.magnitude.significand, b.magnitude.quantum);
}

/// 5.11. Zeros of either sign are equal.
inline Relation relation(const Operand& a, const Operand& b) {
  if (a.is_nan() || b.is_nan()) return Relation::unordered;
  int order = 0;
  if (a.negative == b.negative) {
    order = order_of_magnitudes(a, b) * (a.negative ? -1 : 1);
  } else if (a.kind != Kind::zero || b.kind != Kind::zero) {
    order = a.negative ? -1 : 1;
  }
  return order < 0 ? Relation::less : order == 0 ? Relation::equal : Relation::greater;
}

/// Of a comparison that is `signaling` (tables 5.1, 5.2) or quiet (5.3).
inline bool comparison_is_invalid(const Operand& a, const Operand& b, bool signaling) {
  const bool any_signaling = a.kind == Kind::signaling_nan || b.kind == Kind::signaling_nan;
  return any_signaling || (signaling && (a.is_nan() || b.is_nan()));
}

/// 5.10: a lies before b, or is b.
inline bool total_order(const Operand& a, const Operand& b) {
  // Every negative encoding, -0 and NaNs too, lies before every positive one. Within a sign NaNs
  // lie outside: quiet ones farther out than signaling ones, then the larger payload (5.10 d).
  if (a.negative != b.negative) return a.negative;
  const auto distance = [](const Operand& x) {
    return x.kind == Kind::quiet_nan ? 2 : x.kind == Kind::signaling_nan ? 1 : 0;
  };
  int order = distance(a) - distance(b);
  if (order == 0 && distance(a) == 0) order = order_of_magnitudes(a, b);
  if (order == 0 && distance(a) != 0) order = a.code < b.code ? -1 : a.code > b.code ? 1 : 0;
  return a.negative ? order >= 0 : order <= 0;
}

/// What a minimum does with a NaN beside a number.
enum class BesideNan {
  nan,             ///< minimum, maximum: a NaN
  number,          ///< minimumNumber, maximumNumber: the number, also beside a signaling NaN
  number_if_quiet  ///< minNum, maxNum of 754-2008: a NaN if it is signaling
};

/// x itself, whatever it is.
inline Outcome itself(const Layout& f, const Operand& x) {
  switch (x.kind) {
    case Kind::zero: return zero(x.negative);
    case Kind::infinity: return infinite(x.negative);
    case Kind::finite: return number(f, x.negative, exactly(x.magnitude));
    default: throw std::logic_error("oracle: a NaN is not passed on");
  }
}

/// The smaller or the larger; -0 below +0.
inline Outcome extreme(const Layout& f, const Operand& a, const Operand& b, bool larger,
                       BesideNan rule) {
  if (const auto nan = propagated({&a, &b})) {
    const bool both = a.is_nan() && b.is_nan();
    const bool gives_nan =
        rule == BesideNan::nan || both || (rule == BesideNan::number_if_quiet && nan->invalid);
    if (gives_nan) return *nan;
    Outcome out = itself(f, a.is_nan() ? b : a);
    out.invalid = nan->invalid;
    return out;
  }
  bool a_is_lower = relation(a, b) == Relation::less;
  if (relation(a, b) == Relation::equal) a_is_lower = a.negative;
  return itself(f, a_is_lower != larger ? a : b);
}

/// The ten of 5.7.2, in the order of its list.
enum class NumberClass {
  signaling_nan,
  quiet_nan,
  negative_infinity,
  negative_normal,
  negative_subnormal,
  negative_zero,
  positive_zero,
  positive_subnormal,
  positive_normal,
  positive_infinity
};

inline NumberClass number_class(const Operand& a) {
  using enum NumberClass;
  switch (a.kind) {
    case Kind::signaling_nan: return signaling_nan;
    case Kind::quiet_nan: return quiet_nan;
    case Kind::infinity: return a.negative ? negative_infinity : positive_infinity;
    case Kind::zero: return a.negative ? negative_zero : positive_zero;
    case Kind::finite: break;
  }
  const bool subnormal = exactly(a.magnitude).against(1, a.f->min_exponent()) < 0;
  if (subnormal) return a.negative ? negative_subnormal : positive_subnormal;
  return a.negative ? negative_normal : positive_normal;
}

}  // namespace oracle
