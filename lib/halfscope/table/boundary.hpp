// SPDX-License-Identifier: Apache-2.0
// The magnitudes at which rounding to a format changes class (zero, subnormal, normal, overflow),
// and the cuts within a binade at these boundaries.
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

/// The magnitude (1 + fraction / 2^52) * 2^exponent. It represents every source of at most 53 bits
/// of precision exactly, so "above x" is written as "at or above the next magnitude".
struct Magnitude {
  int exponent = 0;
  std::uint64_t fraction = 0;  ///< in [0, 2^52)

  friend constexpr auto operator<=>(const Magnitude&, const Magnitude&) = default;
};

inline constexpr std::uint64_t kFractionUnit = std::uint64_t{1} << 52;

/// Returns k if x = 2^k exactly; empty for every other double.
std::optional<int> exact_log2(double x);

/// Converts a positive finite double to a magnitude and back. to_double() returns infinity or zero
/// outside binary64's range.
Magnitude magnitude_of(double x);
double to_double(const Magnitude& m);

/// The least magnitudes of three classes under round to nearest, ties to even: below `nonzero` a
/// value becomes zero, from `nonzero` to below `normal` subnormal; from `overflow` on it exceeds
/// the largest finite value. Derived from the format's row; docs/numerics/counting.md.
struct Boundaries {
  Magnitude nonzero;
  Magnitude normal;
  Magnitude overflow;
};

/// Rule for results below a format's smallest normal number 2^emin, under round to nearest, ties to
/// even. docs/numerics/emulator.md lists which processors use which rule.
enum class Subnormals : std::uint8_t {
  keep,
  flush,         ///< zero if tiny after rounding: below 2^emin when rounded to p bits
  flush_before,  ///< zero if tiny before rounding: below 2^emin
  flush_result   ///< zero if the rounded result is subnormal
};

/// A rule with its name on the command line.
struct NamedSubnormals {
  std::string_view name;
  Subnormals rule;
};
inline constexpr std::array kSubnormals = {
    NamedSubnormals{"keep", Subnormals::keep}, NamedSubnormals{"flush", Subnormals::flush},
    NamedSubnormals{"flush-before", Subnormals::flush_before},
    NamedSubnormals{"flush-result", Subnormals::flush_result}};
std::string_view name_of(Subnormals rule);
/// Returns an empty optional if no rule has that name.
std::optional<Subnormals> find_subnormals(std::string_view name);

/// Returns modes that apply the rule to a single operation: flush_to_zero and related members.
Modes with_subnormals(Modes modes, Subnormals rule);

/// Returns the boundaries divided by 2^k, for values that are multiplied by 2^k before rounding.
Boundaries before_scaling(const Boundaries& limits, int k);

/// Returns the boundaries of `target` for values that are multiplied by loss_scale / recorded_scale
/// before they are rounded: the smallest source magnitudes v with v * loss_scale / recorded_scale
/// in the class. Exact for all positive finite scales (128-bit integers; no division is rounded).
/// With flushing, `nonzero` is the least magnitude that is not flushed; if it is above the first
/// magnitude that rounds to a normal number, `normal` equals it, and no value is subnormal. Throws
/// std::invalid_argument if a scale is not a positive finite number.
Boundaries boundaries(Format target, double loss_scale = 1.0, double recorded_scale = 1.0,
                      Subnormals subnormals = Subnormals::keep);

/// Returns the first magnitude v with v / scale >= 2^exponent: the recorded magnitude at which a
/// binade of the unscaled values begins. Exact.
Magnitude unscaled_binade(int exponent, double scale);

/// Returns the fractions of all boundaries of all formats of at most binary16's precision, for
/// power-of-two scales: ascending, without 0. With these cuts a table is exact for all of them.
const std::vector<std::uint64_t>& standard_cuts();

/// Returns the cuts with which a table of recorded values is exact for one format at loss_scale and
/// at every 2^k, and for the unscaled binades, if a scale is not a power of two: ascending, without
/// 0.
std::vector<std::uint64_t> cuts_for(Format target, double loss_scale, double recorded_scale);

}  // namespace halfscope
