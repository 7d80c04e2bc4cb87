// SPDX-License-Identifier: Apache-2.0
// Decides if two results of one sum differ by the order of rounding only, or by a bug.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "halfscope/number/format.hpp"

namespace halfscope::analyzers::reduction {

/// Sums of `length` addends each, in one format, with ties to even and without overflow. The
/// addends are values of the format: rounding them first has the same effect in every order.
struct Sums {
  std::size_t length = 0;  ///< K, the number of addends
  Format format = kBinary32;

  double unit() const;  ///< returns u = 2^-p, half an ulp of 1
  /// Returns true if K u < 1. Longer sums may lose most additions; only the general bound holds.
  bool few() const { return static_cast<double>(length) * unit() < 1; }
  /// Returns true if RandomLimit has a limit. At most 16,384 addends are simulated, in seconds.
  bool has_random_limit() const { return few() || length <= std::size_t{1} << 14; }
};

/// Returns the largest difference of two results in any orders: 2 (K - 1) u S. S is the sum of the
/// addends' magnitudes. Each result is within (K - 1) u S of the exact sum, without terms of higher
/// order and for any K (C.-P. Jeannerod, S. M. Rump, Improved error bounds for inner products in
/// floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013). Subnormal sums are exact.
double bound_of_every_order(const Sums& sums, double magnitudes);

/// Returns a difference that two results in random orders exceed with a probability of at most
/// about 1e-6. result: the larger magnitude of the two. The limit is at most
/// bound_of_every_order(). Empty unless sums.few().
///
/// Model: rounding errors have mean 0 given those before (N. J. Higham, T. Mary, SIAM J. Sci.
/// Comput. 41, 2019), and the addends' squares sum up to at most 3 S^2 / K (normal values: 1.6;
/// Laplace or exponential: 2). The model does not hold if few addends make up most of the sum
/// (docs/numerics/reductions.md, rounding or a bug).
std::optional<double> random_limit(const Sums& sums, double magnitudes, double result);

/// As random_limit(), but from the addends themselves and for any K: twice the range of the results
/// of 4,096 random orders, and at least one ulp of the largest. (Normal results have a range of 7.2
/// deviations. If most additions are lost, nearly all results may be equal and a few far off.)
/// Infinite if a result is not finite. The same on every machine.
double simulated_limit(Format f, std::span<const float> addends, std::uint64_t seed = 1);

/// The random limit of sums of any length: random_limit() if few(), else simulated_limit() of
/// addends drawn from a model with exponential magnitudes, and with as many of either sign as make
/// the result. Keeps its simulations for later calls.
class RandomLimit {
 public:
  explicit RandomLimit(const Sums& sums) : sums_(sums) {}

  const Sums& sums() const { return sums_; }
  /// Returns the limit as random_limit() does. Empty unless has_random_limit().
  std::optional<double> operator()(double magnitudes, double result);

 private:
  double simulated(std::size_t ratio);

  Sums sums_;
  std::array<std::optional<double>, 8> simulated_;  ///< by the result's share of the magnitudes
};

enum class Verdict : std::uint8_t {
  within,      ///< every difference is within the limit of random orders
  above,       ///< some difference exceeds the bound of every order
  cannot_tell  ///< some difference is between these, or needs magnitudes that are missing
};

/// The comparison of two tensors of sums, element by element.
struct OrderVerdict {
  Verdict verdict = Verdict::within;
  std::uint64_t elements = 0;
  std::uint64_t within = 0, above = 0, between = 0;
  std::uint64_t nonfinite = 0;  ///< `between` elements: one result is not finite, the other differs
  bool magnitudes_missing = false;  ///< with magnitudes, fewer elements would be `between`
  std::uint64_t beyond_random = 0;  ///< `between` elements above the limit of random orders
  std::uint64_t unusable = 0;       ///< magnitudes that A's addends cannot have
  std::size_t worst = 0;  ///< the element with the largest difference over its limit or bound
  double worst_ratio = 0;
};

/// Results of sums, which may have been rounded again to the format in which they are stored.
struct Results {
  std::span<const float> values;
  Format stored = kBinary32;
};

/// Compares two tensors of results. magnitudes: for each element the sum of the magnitudes of A's
/// addends; empty if unknown. That sum is at least the result's magnitude, so without it a small
/// difference is still `within`, but no difference is `above`. A magnitude that is less than A's
/// result, infinite, NaN or negative counts as missing. Throws std::invalid_argument if lengths
/// differ or sums.length is 0.
OrderVerdict judge_orders(RandomLimit& limit, const Results& a, const Results& b,
                          std::span<const float> magnitudes = {});

}  // namespace halfscope::analyzers::reduction
