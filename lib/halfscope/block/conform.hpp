// SPDX-License-Identifier: Apache-2.0
// Compares a quantiser's output with a recipe's, bit for bit, and looks for the most likely cause
// of differences: a known dialect, or the recipe with one word changed.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "halfscope/block/quantise.hpp"

namespace halfscope::block {

/// Differences between two outputs of the same shape. NaN codes and NaN scales count as equal.
struct Difference {
  std::uint64_t codes = 0, scales = 0, second = 0;  ///< numbers that differ
  std::uint64_t zero_signs = 0;                     ///< part of `codes`: zeros of the other sign
  /// Places in Quantised's vectors.
  std::optional<std::size_t> first_code, first_scale, first_second;

  bool equal() const { return total() == 0; }
  std::uint64_t total() const { return codes + scales + second; }
};

Difference difference(const Recipe& recipe, const Quantised& wanted, const Quantised& found);

/// A word of the recipe that the output seems to have changed.
enum class Cause : std::uint8_t {
  none,
  dialect,          ///< it is a known library's: Conformity::changed
  formula,          ///< another order of operations, or rule for the scale
  least,            ///< a least magnitude for blocks (eps)
  ties,             ///< ties are rounded another way
  no_second_scale,  ///< the tensor's scale is missing
  no_saturation,    ///< values beyond the largest element become infinity or NaN
  zero_sign,        ///< a zero has the other sign
  block,            ///< blocks have another shape
  columns,          ///< blocks run in the other direction
  hadamard,         ///< with the transform instead of without, or the reverse
  nibbles,          ///< neighbours are exchanged: the high half of a byte was read first
  reciprocal,       ///< each scale, or the tensor's alone, is the reciprocal
  input,            ///< the values were rounded to bfloat16 first
  nearest,          ///< rounded to nearest, not at random
  not_random,       ///< one threshold for all fractions: no randomness
  biased            ///< values do not round up with the probability of their fraction
};

/// Results of tests whether elements were rounded at random, each with an error rate of 1e-6.
struct Randomness {
  std::uint64_t values = 0;                ///< values between two codes, outside saturation
  std::uint64_t up = 0;                    ///< part of `values`: rounded away from zero
  double expected = 0;                     ///< sum of their fractions: the expected value of `up`
  double sigma = 0;                        ///< standard deviation of `up`
  double chi_squared = 0;                  ///< over 16 ranges of the fraction
  double highest_down = 0, lowest_up = 1;  ///< fractions that rounded toward and away from zero
  static constexpr double kLargestSigmas = 4.8916;      ///< two-sided, 1e-6
  static constexpr double kLargestChiSquared = 58.324;  ///< 16 degrees of freedom, 1e-6

  double sigmas() const { return sigma > 0 ? (static_cast<double>(up) - expected) / sigma : 0; }
  bool biased() const { return std::abs(sigmas()) > kLargestSigmas; }
  /// One threshold explains all values: below it they round down, above it up.
  bool has_threshold() const { return highest_down <= lowest_up; }
  bool fits() const { return !biased() && chi_squared <= kLargestChiSquared; }
};

/// The result of measuring an output against a recipe.
struct Conformity {
  Quantised wanted;  ///< the recipe's output, by QuantiseOptions::seed if it rounds at random
  /// If the recipe rounds at random, codes differ that are neither neighbour of their value.
  Difference difference;
  std::optional<Randomness> randomness;  ///< for a recipe that rounds at random
  Cause cause = Cause::none;             ///< explains at least half of the differences
  std::string changed;  ///< the dialect or the changed word: "mxfp8-e4m3-even", "toward zero"
  Difference left;      ///< differences from the recipe with that change; set if there is a cause

  bool conforms() const { return difference.equal() && (!randomness || randomness->fits()); }
};

/// Throws std::invalid_argument if sizes do not fit the recipe, or as quantise().
Conformity conform(const Recipe& recipe, const Matrix& in, const Quantised& found,
                   const QuantiseOptions& options = {});

}  // namespace halfscope::block
