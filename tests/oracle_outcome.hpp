// SPDX-License-Identifier: Apache-2.0
// The judge: what an operation is before it is rounded (a NaN, an infinity, a zero, or a number
// located exactly), and what becomes of that under the modes. IEEE 754-2019, clauses 6 and 7.
#pragma once

#include <initializer_list>
#include <optional>

#include "oracle.hpp"

namespace oracle {

enum class Kind { zero, finite, infinity, quiet_nan, signaling_nan };

/// An encoding taken apart.
struct Operand {
  const Layout* f;
  std::uint64_t code;  ///< without the sign
  Kind kind;
  bool negative;
  Dyadic magnitude;  ///< of a finite nonzero operand

  bool is_nan() const { return kind == Kind::quiet_nan || kind == Kind::signaling_nan; }
  bool is_number() const { return kind == Kind::zero || kind == Kind::finite; }
};

inline Kind kind_of(const Layout& f, std::uint64_t code) {
  if (code == 0) return Kind::zero;
  if (code <= f.last()) return Kind::finite;
  if (f.top == Top::one_nan) return Kind::quiet_nan;
  if (code == f.after_last()) return Kind::infinity;
  const bool quiet = (code >> (f.fraction_bits - 1)) % 2 == 1;  // 6.2.1
  return quiet ? Kind::quiet_nan : Kind::signaling_nan;
}

/// `daz`: a subnormal counts as a zero of its sign.
inline Operand operand(const Layout& f, std::uint64_t bits, bool daz = false) {
  const bool negative = (bits & f.sign()) != 0;
  std::uint64_t code = bits & (f.sign() - 1);
  if (daz && code >> f.fraction_bits == 0) code = 0;
  const Kind kind = kind_of(f, code);
  const Dyadic m = kind == Kind::finite ? magnitude(f, code) : Dyadic{0, 0};
  return {&f, code, kind, negative, m};
}

enum class NanRule { x86, canonical, cuda };

struct Modes {
  Rule rule = Direction::ties_to_even;
  bool tiny_before = false;
  NanRule nan = NanRule::x86;
  bool flush = false;
  bool flush_subnormal = false;  ///< where flush: by the result, not by tininess
  bool saturate = false;
};

struct Flags {
  bool invalid = false, divide_by_zero = false, overflow = false, underflow = false,
       inexact = false;
  friend bool operator==(const Flags&, const Flags&) = default;
};

struct Result {
  std::uint64_t bits;
  Flags flags;
};

/// Before rounding.
struct Outcome {
  enum class Is { nan, infinity, zero, cancelled_zero, number } is;
  bool negative = false;
  bool invalid = false;
  bool divide_by_zero = false;
  std::optional<Operand> source = {};  ///< the operand that a NaN comes from; none: it is new
  Located located = {};                ///< of a number
};

inline Outcome new_nan() { return {.is = Outcome::Is::nan, .invalid = true}; }
inline Outcome infinite(bool negative) {
  return {.is = Outcome::Is::infinity, .negative = negative};
}
inline Outcome zero(bool negative) { return {.is = Outcome::Is::zero, .negative = negative}; }
/// 6.3: the exact sum of operands of unlike signs, or of unlike zeros, is zero.
inline Outcome cancelled_zero() { return {.is = Outcome::Is::cancelled_zero}; }

/// Whether the places of stochastic rounding are wanted (they cost more than all else).
struct Precise {
  bool stochastic = false;
};

template <typename Magnitude>
Outcome number(const Layout& f, bool negative, const Magnitude& x, Precise precise = {}) {
  return {
      .is = Outcome::Is::number, .negative = negative, .located = locate(f, x, precise.stochastic)};
}

/// 6.2.3: the first operand that is a NaN; 7.2 a: invalid if any is signaling.
inline std::optional<Outcome> propagated(std::initializer_list<const Operand*> operands) {
  std::optional<Outcome> out;
  bool signaling = false;
  for (const Operand* x : operands) {
    signaling = signaling || x->kind == Kind::signaling_nan;
    if (x->is_nan() && !out) out = Outcome{.is = Outcome::Is::nan, .source = *x};
  }
  if (out) out->invalid = signaling;
  return out;
}

namespace detail {

/// The fraction field of a NaN of another format: its leading bits, the quiet one set.
inline std::uint64_t payload(const Layout& to, const Operand& from) {
  const std::uint64_t quiet = std::uint64_t{1} << (to.fraction_bits - 1);
  if (from.f->top == Top::one_nan) return quiet;
  const std::uint64_t fraction = from.code & ((std::uint64_t{1} << from.f->fraction_bits) - 1);
  const int longer = from.f->fraction_bits - to.fraction_bits;
  return (longer >= 0 ? fraction >> longer : fraction << -longer) | quiet;
}

inline std::uint64_t nan_bits(const Layout& f, const std::optional<Operand>& source, NanRule rule) {
  const bool negative = rule == NanRule::x86 && (!source || source->negative);
  const std::uint64_t sign = negative ? f.sign() : 0;
  if (f.top == Top::one_nan) return sign | (f.sign() - 1);
  const std::uint64_t infinity = f.infinity();
  const std::uint64_t canonical = infinity | (std::uint64_t{1} << (f.fraction_bits - 1));
  if (rule == NanRule::cuda) return f.sign() - 1;
  if (rule != NanRule::x86 || !source) return sign | canonical;
  return sign | infinity | payload(f, *source);
}

inline Result finished_number(const Layout& f, const Outcome& x, const Modes& modes) {
  const Answer a = decide(f, x.located, x.negative, modes.rule);
  const std::uint64_t sign = x.negative ? f.sign() : 0;
  const bool tiny = modes.tiny_before ? a.tiny_before : a.tiny_after;
  const bool low = (a.bits ^ sign) >> f.fraction_bits == 0;
  if (modes.flush && (modes.flush_subnormal ? low : tiny)) {
    return {sign, {.underflow = true, .inexact = true}};
  }
  const bool infinite = a.overflow && (a.bits ^ sign) == f.infinity();
  const Flags flags = {
      .overflow = a.overflow, .underflow = tiny && a.inexact, .inexact = a.inexact};
  return {modes.saturate && infinite ? sign | f.last() : a.bits, flags};
}

}  // namespace detail

/// An outcome under the modes.
inline Result finish(const Layout& f, const Outcome& x, const Modes& modes) {
  const std::uint64_t sign = x.negative ? f.sign() : 0;
  const Flags flags = {.invalid = x.invalid, .divide_by_zero = x.divide_by_zero};
  switch (x.is) {
    case Outcome::Is::nan:
      if (f.top == Top::numbers) return {f.last(), {.invalid = true}};
      return {detail::nan_bits(f, x.source, modes.nan), flags};
    case Outcome::Is::infinity: return {sign | (modes.saturate ? f.last() : f.infinity()), flags};
    case Outcome::Is::zero: return {sign, flags};
    case Outcome::Is::cancelled_zero:  // 6.3: +0 in all directions except downward
      return {modes.rule.direction == Direction::downward ? f.sign() : 0, flags};
    case Outcome::Is::number: {
      Result out = detail::finished_number(f, x, modes);
      out.flags.invalid = x.invalid;
      out.flags.divide_by_zero = x.divide_by_zero;
      return out;
    }
  }
  throw std::logic_error("oracle: no such outcome");
}

}  // namespace oracle
