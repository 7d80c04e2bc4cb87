// SPDX-License-Identifier: Apache-2.0
// The judge of IEEE 754-2019, 5.4.1 and 5.3.1: arithmetic as exact integers times powers of two.
#pragma once

#include <algorithm>

#include "oracle_outcome.hpp"

namespace oracle {

/// n * 2^scale with a sign; n may be zero.
struct Signed {
  bool negative = false;
  Integer n = 0;
  int scale = 0;
};

inline Signed exact(const Operand& x) {
  return {x.negative, x.magnitude.significand, x.magnitude.quantum};
}

inline Signed product(const Signed& a, const Signed& b) {
  return {a.negative != b.negative, a.n * b.n, a.scale + b.scale};
}

/// The sign of a sum that is zero means nothing.
inline Signed sum(const Signed& a, const Signed& b) {
  const int scale = std::min(a.scale, b.scale);
  const Integer x = a.n << (a.scale - scale);
  const Integer y = b.n << (b.scale - scale);
  if (a.negative == b.negative) return {a.negative, x + y, scale};
  if (x >= y) return {a.negative, x - y, scale};
  return {b.negative, y - x, scale};
}

/// x where a zero is the result of a subtraction.
inline Outcome rounded_sum(const Layout& f, const Signed& x, Precise precise) {
  if (x.n.is_zero()) return cancelled_zero();
  return number(f, x.negative, Quotient{x.n, 1, x.scale}, precise);
}

inline Outcome add(const Layout& f, const Operand& a, const Operand& b, Precise precise = {}) {
  if (const auto nan = propagated({&a, &b})) return *nan;
  const bool a_infinite = a.kind == Kind::infinity;
  const bool b_infinite = b.kind == Kind::infinity;
  if (a_infinite && b_infinite && a.negative != b.negative) return new_nan();  // 7.2 d
  if (a_infinite || b_infinite) return infinite(a_infinite ? a.negative : b.negative);
  if (a.kind == Kind::zero && b.kind == Kind::zero && a.negative == b.negative) {
    return zero(a.negative);
  }
  return rounded_sum(f, sum(exact(a), exact(b)), precise);
}

/// 5.4.1: x - y is x + (-y); but a NaN keeps its sign.
inline Outcome subtract(const Layout& f, const Operand& a, const Operand& b, Precise precise = {}) {
  if (const auto nan = propagated({&a, &b})) return *nan;
  Operand minus_b = b;
  minus_b.negative = !b.negative;
  return add(f, a, minus_b, precise);
}

inline bool is_zero_times_infinity(const Operand& a, const Operand& b) {  // 7.2 b
  return (a.kind == Kind::zero && b.kind == Kind::infinity) ||
         (a.kind == Kind::infinity && b.kind == Kind::zero);
}

inline Outcome multiply(const Layout& f, const Operand& a, const Operand& b, Precise precise = {}) {
  if (const auto nan = propagated({&a, &b})) return *nan;
  if (is_zero_times_infinity(a, b)) return new_nan();
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::infinity || b.kind == Kind::infinity) return infinite(negative);
  if (a.kind == Kind::zero || b.kind == Kind::zero) return zero(negative);
  const Signed p = product(exact(a), exact(b));
  return number(f, negative, Quotient{p.n, 1, p.scale}, precise);
}

inline Outcome divide(const Layout& f, const Operand& a, const Operand& b, Precise precise = {}) {
  if (const auto nan = propagated({&a, &b})) return *nan;
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::infinity) return b.kind == Kind::infinity ? new_nan() : infinite(negative);
  if (b.kind == Kind::infinity) return zero(negative);
  if (b.kind == Kind::zero) {
    if (a.kind == Kind::zero) return new_nan();  // 7.2 e
    Outcome out = infinite(negative);            // 7.3
    out.divide_by_zero = true;
    return out;
  }
  if (a.kind == Kind::zero) return zero(negative);
  const Dyadic x = a.magnitude;
  const Dyadic y = b.magnitude;
  return number(f, negative, Quotient{x.significand, y.significand, x.quantum - y.quantum},
                precise);
}

/// a * b + c. Zero times infinity is invalid even beside a quiet NaN (7.2 c leaves it open): the
/// new NaN then stands where the product would, before c.
inline Outcome fused_multiply_add(const Layout& f, const Operand& a, const Operand& b,
                                  const Operand& c, Precise precise = {}) {
  if (is_zero_times_infinity(a, b)) return new_nan();
  if (const auto nan = propagated({&a, &b, &c})) return *nan;
  const bool negative = a.negative != b.negative;
  const bool infinite_product = a.kind == Kind::infinity || b.kind == Kind::infinity;
  if (infinite_product && c.kind == Kind::infinity && c.negative != negative) return new_nan();
  if (infinite_product) return infinite(negative);
  if (c.kind == Kind::infinity) return infinite(c.negative);
  const bool zero_product = a.kind == Kind::zero || b.kind == Kind::zero;
  if (zero_product && c.kind == Kind::zero && c.negative == negative) return zero(negative);
  return rounded_sum(f, sum(product(exact(a), exact(b)), exact(c)), precise);
}

inline Outcome square_root(const Layout& f, const Operand& a, Precise precise = {}) {
  if (const auto nan = propagated({&a})) return *nan;
  if (a.kind == Kind::zero) return zero(a.negative);  // 5.4.1: squareRoot(-0) is -0
  if (a.negative) return new_nan();                   // 7.2 g
  if (a.kind == Kind::infinity) return infinite(false);
  return number(f, false, Root{exactly(a.magnitude)}, precise);
}

/// x - y * n, n the integer nearest to x / y, even in a tie (5.3.1). A zero has the sign of x.
inline Outcome remainder(const Layout& f, const Operand& a, const Operand& b,
                         Precise precise = {}) {
  if (const auto nan = propagated({&a, &b})) return *nan;
  if (a.kind == Kind::infinity || b.kind == Kind::zero) return new_nan();  // 7.2 f
  if (a.kind == Kind::zero) return zero(a.negative);
  if (b.kind == Kind::infinity) return number(f, a.negative, exactly(a.magnitude), precise);
  const int scale = std::min(a.magnitude.quantum, b.magnitude.quantum);
  const Integer x = Integer(a.magnitude.significand) << (a.magnitude.quantum - scale);
  const Integer y = Integer(b.magnitude.significand) << (b.magnitude.quantum - scale);
  const Integer rest = x % y;
  const Integer floor = x / y;
  const int against_half = Integer(rest * 2).compare(y);
  const bool next = against_half > 0 || (against_half == 0 && floor % 2 == 1);
  if (rest.is_zero()) return zero(a.negative);
  const Integer r = next ? Integer(y - rest) : rest;
  return number(f, a.negative != next, Quotient{r, 1, scale}, precise);
}

/// 5.4.2, formatOf-convertFormat.
inline Outcome convert(const Layout& to, const Operand& a, Precise precise = {}) {
  if (const auto nan = propagated({&a})) return *nan;
  if (a.kind == Kind::infinity) return infinite(a.negative);
  if (a.kind == Kind::zero) return zero(a.negative);
  return number(to, a.negative, exactly(a.magnitude), precise);
}

}  // namespace oracle
