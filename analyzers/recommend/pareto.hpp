// SPDX-License-Identifier: Apache-2.0
// The generalized Pareto distribution: what the excesses over a high threshold tend to, whatever
// the distribution (A. A. Balkema, L. de Haan, Ann. Prob. 2, 1974; J. Pickands, Ann. Stat. 3,
// 1975).
#pragma once

#include <span>
#include <vector>

namespace halfscope::analyzers::recommend {

/// P(X > x) = (1 + shape * x / scale)^(-1 / shape) for x >= 0; exp(-x / scale) at shape 0. A
/// negative shape has an end, -scale / shape.
struct Pareto {
  double shape = 0;
  double scale = 1;  ///< positive

  double survival(double x) const;
  /// x with survival(x) = p, p in (0, 1].
  double quantile_above(double p) const;
};

/// Probability-weighted moments: J. R. M. Hosking, J. R. Wallis, Technometrics 29, 1987; the end is
/// moved out to the largest excess where the fit would lie below it. excesses: ascending, at least
/// two, positive in sum.
Pareto fit_pareto(std::span<const double> excesses);

/// Every distribution whose log likelihood is close to the largest, on a grid over shapes from -1
/// to 1.5: for profile likelihood intervals of anything computed from the two parameters.
class ParetoRegion {
 public:
  /// excesses as above. deficit: how far below the largest log likelihood is still inside, of as
  /// many independent excesses as `effective` (at most all).
  ParetoRegion(std::span<const double> excesses, double effective, double deficit);

  const Pareto& likeliest() const { return likeliest_; }

  struct Range {
    double low, high;
  };
  /// The smallest and largest survival(x) in the region.
  Range survival(double x) const;

 private:
  Pareto likeliest_;
  std::vector<Pareto> inside_;
};

}  // namespace halfscope::analyzers::recommend
