// SPDX-License-Identifier: Apache-2.0
// The upper tail of a series with a trend and serial correlation: how likely its next value reaches
// a limit, with an interval. The method and its measured coverage: docs/numerics.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzers/recommend/pareto.hpp"
#include "analyzers/recommend/proportion.hpp"

namespace halfscope::analyzers::recommend {

/// y = level + slope * (t - last t), by least squares.
struct Trend {
  double slope = 0;
  double level = 0;  ///< at the last time
};

/// How likely a limit is reached.
struct Reach {
  Proportion fitted;    ///< if larger values carry on the tail of those seen
  Proportion whatever;  ///< whatever the tail: no narrower than what counting supports
};

/// How likely a value at the series' last time reaches limits.
class Tail {
 public:
  /// Least values for which a tail is fitted.
  static constexpr std::size_t kLeast = 100;

  /// times ascending, one for each value, at least kLeast. Deterministic for a seed.
  Tail(std::span<const double> times, std::span<const double> values, std::uint64_t seed);

  const Trend& trend() const { return trend_; }
  double trend_error() const { return trend_error_; }  ///< standard error of the slope
  /// False where the largest values are all alike: there is no tail to fit.
  bool fitted() const { return fitted_; }

  /// One for each limit. No end rises with the limit.
  std::vector<Reach> reaching(std::span<const double> limits) const;

 private:
  struct Fit {
    double level = 0;      ///< of the trend, at the last time
    double threshold = 0;  ///< of residuals
    Pareto excess;
    std::vector<double> residuals;  ///< ascending
    double reaching(double limit, std::size_t exceedances) const;
  };
  struct Correlation {
    double level_error = 0;  ///< standard error of the trend at the last time
    double inflation = 1;    ///< exceedances per independent one
    std::size_t block = 1;   ///< length for resampling
  };

  Trend fit_trend(std::span<const double> values) const;
  std::vector<double> residuals_of(std::span<const double> values, const Trend& trend) const;
  Fit fit(std::span<const double> values) const;
  void correlate(std::span<const double> residuals);
  std::vector<std::vector<double>> bootstrap(std::span<const double> limits) const;
  /// From the share of residuals, and what both serial correlation and the trend leave unsure.
  Proportion by_counting(double limit) const;
  /// Beyond the threshold.
  Proportion by_likelihood(double limit, const ParetoRegion& region) const;
  double binomial_above(double limit) const;
  Reach reach(double limit, const ParetoRegion& region, const std::vector<double>& resampled) const;
  /// Limits at which the ends are found, ascending: those asked for and others.
  std::vector<double> ladder(std::span<const double> limits) const;

  std::vector<double> times_;    ///< minus their mean
  double time_squares_ = 0;      ///< sum of their squares
  std::size_t exceedances_ = 0;  ///< over the threshold
  std::uint64_t seed_ = 1;
  std::vector<double> residuals_;  ///< in order of time
  Trend trend_;
  double trend_error_ = 0;
  Correlation correlation_;
  Fit fit_;
  bool fitted_ = false;
};

}  // namespace halfscope::analyzers::recommend
