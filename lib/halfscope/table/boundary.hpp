// SPDX-License-Identifier: Apache-2.0
// Where a format's rounding changes class (zero, subnormal, normal, overflow), and the cuts inside
// a binade that these boundaries make.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

/// A magnitude (1 + fraction / 2^52) * 2^exponent. 52 bits of fraction hold every source of at most
/// 53 bits of precision exactly, so "above x" is written as "at or above the next one".
struct Magnitude {
  int exponent = 0;
  std::uint64_t fraction = 0;  ///< in [0, 2^52)

  friend constexpr auto operator<=>(const Magnitude&, const Magnitude&) = default;
};

inline constexpr std::uint64_t kFractionUnit = std::uint64_t{1} << 52;

/// k where x = 2^k exactly; empty for every other double.
std::optional<int> exact_log2(double x);

/// A positive finite double as a magnitude, and back; infinity or zero beyond binary64's range.
Magnitude magnitude_of(double x);
double to_double(const Magnitude& m);

/// The first magnitudes of three classes under round to nearest, ties to even: below `nonzero` a
/// value becomes zero; from there below `normal` subnormal; from `overflow` on it exceeds the
/// largest finite value. Derived from the format's row; docs/numerics/counting.md.
struct Boundaries {
  Magnitude nonzero;
  Magnitude normal;
  Magnitude overflow;
};

/// What becomes of results below a format's smallest normal number 2^emin, under round to nearest,
/// ties to even. docs/numerics/emulator.md has which processors do which.
enum class Subnormals : std::uint8_t {
  keep,
  flush,         ///< zero where tiny after rounding: below 2^emin rounded to p bits
  flush_before,  ///< zero where tiny before rounding: below 2^emin
  flush_result   ///< zero where the rounded result is subnormal
};

/// A rule by its name on the command line.
struct NamedSubnormals {
  std::string_view name;
  Subnormals rule;
};
inline constexpr std::array kSubnormals = {
    NamedSubnormals{"keep", Subnormals::keep}, NamedSubnormals{"flush", Subnormals::flush},
    NamedSubnormals{"flush-before", Subnormals::flush_before},
    NamedSubnormals{"flush-result", Subnormals::flush_result}};
std::string_view name_of(Subnormals rule);
/// Empty where no rule has that name.
std::optional<Subnormals> find_subnormals(std::string_view name);

/// The same rule for a single operation: flush_to_zero and what belongs to it.
Modes with_subnormals(Modes modes, Subnormals rule);

/// The boundaries divided by 2^k: those of values that are multiplied by 2^k first.
Boundaries before_scaling(const Boundaries& limits, int k);

/// The boundaries of `target` for values that are multiplied by loss_scale / recorded_scale before
/// they are rounded: the smallest source magnitudes v with v * loss_scale / recorded_scale in the
/// class. Exact for all positive finite scales (128-bit integers, no division is rounded).
/// `nonzero` is where values start that are not flushed; where that is above the first that rounds
/// to a normal number, `normal` is there, too, and nothing is subnormal.
/// Throws std::invalid_argument when a scale is not a positive finite number.
Boundaries boundaries(Format target, double loss_scale = 1.0, double recorded_scale = 1.0,
                      Subnormals subnormals = Subnormals::keep);

/// The first magnitude v with v / scale >= 2^exponent: where a binade of the unscaled values starts
/// among recorded ones. Exact.
Magnitude unscaled_binade(int exponent, double scale);

/// The fractions at which some boundary of some format of at most binary16's precision falls, for
/// scales that are powers of two: ascending, without 0. What a table needs to be exact for them
/// all.
const std::vector<std::uint64_t>& standard_cuts();

/// What a table of recorded values needs to be exact for one format at loss_scale and at every 2^k,
/// and for the unscaled binades, when a scale is no power of two: ascending, without 0.
std::vector<std::uint64_t> cuts_for(Format target, double loss_scale, double recorded_scale);

}  // namespace halfscope
