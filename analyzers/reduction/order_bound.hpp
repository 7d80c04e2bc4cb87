// SPDX-License-Identifier: Apache-2.0
// Two results of one sum differ: is it rounding in another order, or a bug?
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "halfscope/number/format.hpp"

namespace halfscope::analyzers::reduction {

/// Sums of `length` addends each, in one format, with ties to even and without overflow. The
/// addends are those of the format: what rounding them first does is the same in every order.
struct Sums {
  std::size_t length = 0;  ///< K
  Format format = kBinary32;

  double unit() const;  ///< u = 2^-p: half an ulp of 1
  /// K u < 1. Beyond that, additions may be lost as a rule, and only the bound of every order
  /// holds.
  bool few() const { return static_cast<double>(length) * unit() < 1; }
  /// RandomLimit has one: at most 16,384 addends are simulated, which takes seconds.
  bool has_random_limit() const { return few() || length <= std::size_t{1} << 14; }
};

/// How far two results can be apart, whatever their orders: 2 (K - 1) u S. S is the sum of the
/// addends' magnitudes. Each result is within (K - 1) u S of the exact sum, without terms of higher
/// order and for any K (C.-P. Jeannerod, S. M. Rump, Improved error bounds for inner products in
/// floating-point arithmetic, SIAM J. Matrix Anal. Appl. 34, 2013). Subnormal sums are exact.
double bound_of_every_order(const Sums& sums, double magnitudes);

/// A difference that two results in random orders exceed with a probability of about 1e-6 or less.
/// result: the larger magnitude of the two. Never above bound_of_every_order(). Empty unless
/// sums.few().
///
/// Model: rounding errors have mean 0 given those before (N. J. Higham, T. Mary, SIAM J. Sci.
/// Comput. 41, 2019), the addends' squares sum up to at most 3 S^2 / K (normal values: 1.6; Laplace
/// or exponential: 2). It does not hold if few addends make up most of the sum
/// (docs/numerics/reductions.md, rounding or a bug).
std::optional<double> random_limit(const Sums& sums, double magnitudes, double result);

/// The same from the addends themselves, for any K: twice the range of the results of 4,096 random
/// orders, and at least one ulp of the largest. (Normal results have a range of 7.2 deviations.
/// Where additions are lost as a rule, nearly all results may agree and a few be far off.) Infinite
/// if a result is not finite. The same number on every machine.
double simulated_limit(Format f, std::span<const float> addends, std::uint64_t seed = 1);

/// The random limit of sums of any length. It is random_limit() where few() holds. Else it is
/// simulated_limit() of addends that a model draws: exponential magnitudes, and as many of either
/// sign as give the result. Simulations are kept.
class RandomLimit {
 public:
  explicit RandomLimit(const Sums& sums) : sums_(sums) {}

  const Sums& sums() const { return sums_; }
  /// As random_limit(). Empty unless has_random_limit().
  std::optional<double> operator()(double magnitudes, double result);

 private:
  double simulated(std::size_t ratio);

  Sums sums_;
  std::array<std::optional<double>, 8> simulated_;  ///< by the result's share of the magnitudes
};

enum class Verdict : std::uint8_t {
  within,      ///< no difference is above what random orders do
  above,       ///< a difference is above what any order can do
  cannot_tell  ///< between the two, or the magnitudes are needed and not given
};

/// Two tensors of sums, element by element.
struct OrderVerdict {
  Verdict verdict = Verdict::within;
  std::uint64_t elements = 0;
  std::uint64_t within = 0, above = 0, between = 0;
  std::uint64_t nonfinite = 0;  ///< of `between`: one result is infinite or NaN, the other differs
  bool magnitudes_missing = false;  ///< with the sums of magnitudes there would be less `between`
  std::uint64_t beyond_random = 0;  ///< of `between`: more than random orders give
  std::uint64_t unusable = 0;       ///< magnitudes that cannot be those of A's addends
  std::size_t worst = 0;  ///< the element with the largest difference over its limit or bound
  double worst_ratio = 0;
};

/// Results of sums, which may have been rounded once more, to the format they are stored in.
struct Results {
  std::span<const float> values;
  Format stored = kBinary32;
};

/// magnitudes: of each element the sum of the addends' magnitudes of A, or empty. A sum of
/// magnitudes is at least the result's magnitude: so without them a small difference is still
/// `within`, and no difference is `above`. One that is less than A's result, infinite, NaN or
/// negative counts as missing. Throws std::invalid_argument when lengths differ or sums.length is
/// 0.
OrderVerdict judge_orders(RandomLimit& limit, const Results& a, const Results& b,
                          std::span<const float> magnitudes = {});

}  // namespace halfscope::analyzers::reduction
