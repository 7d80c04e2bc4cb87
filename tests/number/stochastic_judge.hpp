// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding by its definition alone: with r random bits R, a magnitude between two
// neighbours rounds up if and only if its distance from the lower one, in units of the distance
// between them, exceeds R / 2^r. So of the 2^r values of R, the first ceil(fraction * 2^r) round
// up. Of the oracle only layouts and values are used here, none of its roundings.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "halfscope/number/modes.hpp"
#include "oracle.hpp"

namespace stochastic {

using oracle::Integer;
using oracle::Rational;

/// Of a rational that is not negative.
inline Integer floor(const Rational& x) { return numerator(x) / denominator(x); }
inline Integer ceiling(const Rational& x) {
  return (numerator(x) + denominator(x) - 1) / denominator(x);
}

/// An exact positive magnitude: a rational, or the square root of one.
struct Exact {
  Rational x;
  bool is_root = false;

  bool above(const Rational& q) const { return is_root ? x > q * q : x > q; }
  bool at_least(const Rational& q) const { return is_root ? x >= q * q : x >= q; }
};

inline int floor_log2(const Exact& x) {
  int e = 0;
  while (!x.at_least(oracle::power_of_two(e))) e -= 16;
  while (x.at_least(oracle::power_of_two(e + 1))) ++e;
  return e;
}

/// x with lower <= x < lower + 1, in units of 2^quantum.
struct Between {
  Exact x;
  Integer lower;
  int quantum;

  Between(const Exact& exact, int place) : x(exact), quantum(place) {
    const Rational unit = oracle::power_of_two(quantum);
    lower = x.is_root ? sqrt(floor(x.x / (unit * unit))) : floor(x.x / unit);
  }
  Rational at(const Rational& units) const { return units * oracle::power_of_two(quantum); }
  bool exact() const { return !x.above(at(lower)); }

  /// How many of the values of R round up.
  std::uint64_t count_up(int random_bits) const {
    if (exact()) return 0;
    const Integer all = Integer(1) << random_bits;
    if (!x.is_root) return static_cast<std::uint64_t>(ceiling((x.x / at(1) - lower) * all));
    Integer last = 0;  // the last R that does
    for (int bit = random_bits - 1; bit >= 0; --bit) {
      const Integer trial = last + (Integer(1) << bit);
      if (x.above(at(lower + Rational(trial, all)))) last = trial;
    }
    return static_cast<std::uint64_t>(last) + 1;
  }
};

/// For one number of random bits: the first R that rounds down, at the format's last place and at
/// p digits with an unbounded exponent (which decides overflow, and tininess after rounding).
struct Counts {
  std::uint64_t bounded;
  std::uint64_t unbounded;
};

/// A magnitude to be rounded to format f: its two neighbours, in both senses, and their flags.
class Rounding {
 public:
  Rounding(const oracle::Layout& f, const Exact& x)
      : f_(f),
        e_(floor_log2(x)),
        unbounded_(x, e_ - f.fraction_bits),
        bounded_(x, std::max(e_, f.min_exponent()) - f.fraction_bits),
        tiny_before_(!x.at_least(oracle::power_of_two(f.min_exponent()))) {
    for (const int i : {0, 1}) {
      const Rational candidate = unbounded_.at(Rational(unbounded_.lower + i));
      beyond_[i] = candidate > oracle::value(f, f.last());
      tiny_[i] = candidate < oracle::power_of_two(f.min_exponent());
    }
  }

  Counts counts(int random_bits) const {
    return {bounded_.count_up(random_bits), unbounded_.count_up(random_bits)};
  }
  bool exact() const { return bounded_.exact(); }
  /// Both neighbours are too large, so nothing is left to chance.
  bool always_overflows() const { return beyond_[0]; }

  halfscope::Rounded want(bool negative, const halfscope::Modes& modes, const Counts& c) const {
    const std::uint64_t sign = negative ? f_.sign() : 0;
    const int free = modes.random < c.unbounded ? 1 : 0;
    if (beyond_[free]) {
      const std::uint64_t magnitude = modes.saturate ? f_.last() : f_.infinity();
      return {sign | magnitude, {.overflow = true, .inexact = true}};
    }
    const bool before = modes.tininess == halfscope::Tininess::before_rounding;
    const bool tiny = before ? tiny_before_ : tiny_[free];
    if (tiny && modes.flush_to_zero) return {sign, {.underflow = true, .inexact = true}};
    const bool inexact = !exact();
    const std::uint64_t bits = encoding(modes.random < c.bounded ? 1 : 0);
    return {sign | bits, {.underflow = tiny && inexact, .inexact = inexact}};
  }

 private:
  /// Encodings count up by one from a multiple of the last place to the next, 2^(p-1) a binade.
  std::uint64_t encoding(int up) const {
    const auto binade = static_cast<std::uint64_t>(std::max(e_ - f_.min_exponent(), 0));
    return (binade << f_.fraction_bits) + static_cast<std::uint64_t>(bounded_.lower) +
           static_cast<std::uint64_t>(up);
  }

  const oracle::Layout& f_;
  int e_;
  Between unbounded_;
  Between bounded_;
  bool tiny_before_;
  std::array<bool, 2> beyond_{}, tiny_{};  ///< of the lower and the upper p-digit neighbour
};

inline std::string text(const halfscope::Rounded& r) {
  return fmt::format("{:#x}{}{}{}{}", r.bits, r.flags.invalid ? " invalid" : "",
                     r.flags.overflow ? " overflow" : "", r.flags.underflow ? " underflow" : "",
                     r.flags.inexact ? " inexact" : "");
}

inline bool same(const halfscope::Rounded& a, const halfscope::Rounded& b) {
  return a.bits == b.bits && a.flags == b.flags;
}

/// Empty when `ours(modes)` is right for every R of `random_bits` bits; and the number of results
/// away from zero is that of the definition.
template <typename Ours>
std::string judged_for_all(const Rounding& x, bool negative, int random_bits, const Ours& ours) {
  const Counts counts = x.counts(random_bits);
  const std::uint64_t all = std::uint64_t{1} << random_bits;
  const std::uint64_t down = ours({.rounding = halfscope::Rounding::toward_zero}).bits;
  std::uint64_t ups = 0;
  for (std::uint64_t random = 0; random < all; ++random) {
    const halfscope::Modes modes = {.rounding = halfscope::Rounding::stochastic,
                                    .random = static_cast<std::uint32_t>(random),
                                    .random_bits = random_bits};
    const halfscope::Rounded got = ours(modes);
    const halfscope::Rounded want = x.want(negative, modes, counts);
    if (!same(got, want)) {
      return fmt::format("R {} of {} bits: found {}, expected {}", random, random_bits, text(got),
                         text(want));
    }
    if (got.bits != down || got.flags.overflow) ++ups;
  }
  if (x.always_overflows() || ups == counts.bounded) return {};
  return fmt::format("{} of {} random numbers round up, expected {}", ups, all, counts.bounded);
}

/// The same for the R beside the two thresholds and at the ends, under every combination of
/// tininess, flushing and saturation.
template <typename Ours>
std::string judged_at_thresholds(const Rounding& x, bool negative, int random_bits,
                                 const Ours& ours) {
  const Counts counts = x.counts(random_bits);
  const std::uint64_t largest = (std::uint64_t{1} << random_bits) - 1;
  for (const std::uint64_t at : {std::uint64_t{0}, counts.bounded, counts.unbounded, largest}) {
    for (const std::uint64_t random : {at - 1, at, at + 1}) {
      if (random > largest) continue;
      for (unsigned i = 0; i < 8; ++i) {
        halfscope::Modes modes = {.rounding = halfscope::Rounding::stochastic,
                                  .flush_to_zero = (i & 1) != 0,
                                  .saturate = (i & 2) != 0,
                                  .random = static_cast<std::uint32_t>(random),
                                  .random_bits = random_bits};
        if (i >= 4) modes.tininess = halfscope::Tininess::before_rounding;
        const halfscope::Rounded got = ours(modes);
        const halfscope::Rounded want = x.want(negative, modes, counts);
        if (same(got, want)) continue;
        return fmt::format("R {:#x} of {} bits, modes {}: found {}, expected {}", random,
                           random_bits, i, text(got), text(want));
      }
    }
  }
  return {};
}

/// Small r exhaustively, larger ones at their thresholds.
template <typename Ours>
std::string judged(const oracle::Layout& f, const Exact& magnitude, bool negative,
                   const Ours& ours) {
  const Rounding x(f, magnitude);
  std::string wrong;
  for (const int random_bits : {1, 2, 3, 6}) {
    if (wrong.empty()) wrong = judged_for_all(x, negative, random_bits, ours);
  }
  for (const int random_bits : {9, 31, 32}) {
    if (wrong.empty()) wrong = judged_at_thresholds(x, negative, random_bits, ours);
  }
  return wrong;
}

}  // namespace stochastic
