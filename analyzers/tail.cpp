// SPDX-License-Identifier: Apache-2.0
#include "analyzers/tail.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "halfscope/number/random.hpp"

namespace halfscope::analyzers {
namespace {

constexpr double kOneSide = 0.025;      // of a 95 % interval
constexpr double kTwoSigma = 1.959964;  // the normal's quantile for it
constexpr int kReplicates = 300;
/// Half of chi squared with one degree of freedom at 95 % is 1.92. That is for many exceedances,
/// and for a tail that is Pareto exactly; 3 is what gave 95 % on synthetic runs of few.
constexpr double kDeficit = 3;

/// Uniform numbers in (0, 1).
class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : seed_(seed) {}
  double operator()() { return (random_word(seed_, index_++) + 0.5) * 0x1p-32; }

 private:
  std::uint64_t seed_, index_ = 0;
};

std::size_t count_from(const std::vector<double>& ascending, double x) {
  return static_cast<std::size_t>(ascending.end() -
                                  std::lower_bound(ascending.begin(), ascending.end(), x));
}

double share(double part, std::size_t whole) { return part / static_cast<double>(whole); }

/// How many times fewer independent exceedances there are: 1 + 2 sum of the autocorrelations of
/// "over the threshold", up to the first that is not positive.
double inflation_of(std::span<const double> residuals, double threshold, std::size_t exceedances) {
  const std::size_t n = residuals.size();
  const double p = share(static_cast<double>(exceedances), n);
  double inflation = 1;
  for (std::size_t lag = 1; lag < n / 4; ++lag) {
    std::size_t both = 0;
    for (std::size_t i = lag; i < n; ++i) {
      both += residuals[i] > threshold && residuals[i - lag] > threshold;
    }
    const double covariance = share(static_cast<double>(both), n - lag) - p * p;
    if (covariance <= 0) break;
    inflation += 2 * (1 - share(static_cast<double>(lag), n)) * covariance / (p * (1 - p));
  }
  return inflation;
}

std::size_t distinct(std::span<const double> values) {
  return std::set<double>(values.begin(), values.end()).size();
}

/// Correlation of neighbours, its bias of about -(1 + 4 r) / n in part put back, in [0, 0.95].
double neighbour_correlation(std::span<const double> residuals) {
  double squares = 0, products = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    squares += residuals[i] * residuals[i];
    if (i != 0) products += residuals[i] * residuals[i - 1];
  }
  if (squares == 0) return 0;
  return std::clamp(products / squares + share(2, residuals.size()), 0.0, 0.95);
}

double square(double x) { return x * x; }

/// Ends of a product of factors that vary on their own: in the logarithm, distances from the
/// estimate add as squares (G. Y. Zou, A. Donner, Stat. Med. 27, 2008).
Proportion product(std::initializer_list<Proportion> factors) {
  double log = 0, down = 0, up = 0;
  bool to_zero = false;
  for (const Proportion& f : factors) {
    log += std::log(f.estimate);
    to_zero |= f.low <= 0;
    if (!to_zero) down += square(std::log(f.estimate / f.low));
    up += square(std::log(f.high / f.estimate));
  }
  return {std::exp(log), to_zero ? 0 : std::exp(log - std::sqrt(down)),
          std::min(1.0, std::exp(log + std::sqrt(up)))};
}

}  // namespace

Tail::Tail(std::span<const double> times, std::span<const double> values, std::uint64_t seed)
    : times_(times.begin(), times.end()), seed_(seed) {
  const std::size_t n = times_.size();
  double mean = 0;
  for (const double t : times_) mean += share(t, n);
  for (double& t : times_) time_squares_ += square(t -= mean);
  // A fifth at most: the tail. Growing as the root of n, so that the threshold rises.
  exceedances_ = std::min(n / 5, static_cast<std::size_t>(3 * std::sqrt(static_cast<double>(n))));
  trend_ = fit_trend(values);
  residuals_ = residuals_of(values, trend_);
  fit_ = fit(values);
  // A few values repeated, or a perfect line, say nothing about a tail.
  constexpr std::size_t kLeastDistinct = 20;
  constexpr double kNoise = 1e-6;  // binades
  fitted_ = distinct(values) >= kLeastDistinct && fit_.residuals.back() > fit_.threshold + kNoise;
  if (fitted_) correlate(residuals_);
}

Trend Tail::fit_trend(std::span<const double> values) const {
  double mean = 0, products = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    mean += share(values[i], values.size());
    products += times_[i] * values[i];
  }
  const double slope = time_squares_ > 0 ? products / time_squares_ : 0;
  return {slope, mean + slope * times_.back()};
}

std::vector<double> Tail::residuals_of(std::span<const double> values, const Trend& trend) const {
  std::vector<double> residuals(values.begin(), values.end());
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] -= trend.level + trend.slope * (times_[i] - times_.back());
  }
  return residuals;
}

Tail::Fit Tail::fit(std::span<const double> values) const {
  Fit fit;
  const Trend trend = fit_trend(values);
  fit.level = trend.level;
  fit.residuals = residuals_of(values, trend);
  std::sort(fit.residuals.begin(), fit.residuals.end());
  const std::size_t first = fit.residuals.size() - exceedances_;
  fit.threshold = fit.residuals[first - 1];
  std::vector<double> excesses(fit.residuals.begin() + static_cast<std::ptrdiff_t>(first),
                               fit.residuals.end());
  for (double& x : excesses) x -= fit.threshold;
  if (excesses.back() > 0) fit.excess = fit_pareto(excesses);
  return fit;
}

double Tail::Fit::reaching(double limit, std::size_t exceedances) const {
  const double x = limit - level;
  if (x <= threshold) return share(static_cast<double>(count_from(residuals, x)), residuals.size());
  return share(static_cast<double>(exceedances), residuals.size()) * excess.survival(x - threshold);
}

void Tail::correlate(std::span<const double> residuals) {
  const std::size_t n = residuals.size();
  double squares = 0;
  for (const double e : residuals) squares += e * e;
  const double r = neighbour_correlation(residuals);
  const double longer = std::sqrt((1 + r) / (1 - r));  // of a first-order autoregression
  const double deviation = std::sqrt(share(squares, n - 2)) * longer;
  trend_error_ = time_squares_ > 0 ? deviation / std::sqrt(time_squares_) : 0;
  correlation_.level_error =
      std::hypot(deviation / std::sqrt(static_cast<double>(n)), trend_error_ * times_.back());
  correlation_.inflation = inflation_of(residuals, fit_.threshold, exceedances_);
  // Block length of a first-order autoregression: E. Carlstein, Ann. Stat. 14, 1986.
  const double length = std::cbrt(static_cast<double>(n)) * std::pow(2 * r / (1 - r * r), 2.0 / 3);
  correlation_.block =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(length)), 1, n / 5);
}

// Blocks of neighbouring residuals keep the correlation (circular: D. N. Politis, J. P. Romano,
// 1992). Values of the tail are drawn anew from the fit, since resampling alone never goes beyond
// the largest.
std::vector<std::vector<double>> Tail::bootstrap(std::span<const double> limits) const {
  std::vector<std::vector<double>> found(limits.size());
  Uniform uniform(seed_);
  const std::size_t n = residuals_.size();
  std::vector<double> sample(n);
  for (int replicate = 0; replicate < kReplicates; ++replicate) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool new_block = i % correlation_.block == 0;
      from = new_block ? static_cast<std::size_t>(uniform() * static_cast<double>(n)) : from + 1;
      const double e = residuals_[from % n];
      const bool in_tail = e > fit_.threshold;
      sample[i] = in_tail ? fit_.threshold + fit_.excess.quantile_above(uniform()) : e;
    }
    const Fit again = fit(sample);
    for (std::size_t j = 0; j < limits.size(); ++j) {
      found[j].push_back(again.reaching(limits[j] - trend_.level, exceedances_));
    }
  }
  for (auto& risks : found) std::sort(risks.begin(), risks.end());
  return found;
}

Proportion Tail::by_likelihood(double limit, const ParetoRegion& region) const {
  const double n = static_cast<double>(residuals_.size()) / correlation_.inflation;
  const double x = limit - fit_.level;
  const double margin = kTwoSigma * correlation_.level_error;
  if (x <= fit_.threshold) {
    const double here = fit_.reaching(limit, exceedances_);
    const double above = fit_.reaching(limit - margin, exceedances_);
    const double below = fit_.reaching(limit + margin, exceedances_);
    const Proportion counted = binomial(here * n, n);
    if (here <= 0) return {0, 0, std::max(counted.high, above)};
    return product({counted, {1, below / here, above / here}});
  }
  const double over = share(static_cast<double>(exceedances_), residuals_.size());
  Proportion threshold = binomial(over * n, n);
  const ParetoRegion::Range tail = region.survival(x - fit_.threshold);
  const double best = region.likeliest().survival(x - fit_.threshold);
  // Beyond the end of the likeliest: no ratio to it exists, only upper ends.
  if (best <= 0) return {0, 0, threshold.high * tail.high};
  const auto shifted = [&](double by) {
    return region.likeliest().survival(x + by - fit_.threshold);
  };
  return product({threshold,
                  {best, tail.low, tail.high},
                  {1, shifted(margin) / best, shifted(-margin) / best}});
}

/// The binomial bound at the largest residual, continued past it as an exponential tail.
double Tail::binomial_above(double limit) const {
  const double n = static_cast<double>(residuals_.size()) / correlation_.inflation;
  const double x = limit - fit_.level;
  double mean = 0;
  for (std::size_t i = residuals_.size() - exceedances_; i < residuals_.size(); ++i) {
    mean += share(fit_.residuals[i] - fit_.threshold, exceedances_);
  }
  const double beyond = x - fit_.residuals.back();
  return beyond < 0 ? 0 : binomial(0, n).high * std::exp(-beyond / mean);
}

std::vector<Proportion> Tail::reaching(std::span<const double> limits) const {
  std::vector<double> excesses;
  for (std::size_t i = residuals_.size() - exceedances_; i < residuals_.size(); ++i) {
    excesses.push_back(fit_.residuals[i] - fit_.threshold);
  }
  const double effective = static_cast<double>(exceedances_) / correlation_.inflation;
  const ParetoRegion region(excesses, effective, kDeficit);
  const auto resampled = bootstrap(limits);
  std::vector<Proportion> risks;
  for (std::size_t j = 0; j < limits.size(); ++j) {
    Proportion risk = by_likelihood(limits[j], region);
    const auto at = [&](double p) {
      return resampled[j][static_cast<std::size_t>(p * kReplicates)];
    };
    risk.estimate = fit_.reaching(limits[j], exceedances_);
    risk.low = std::min(risk.low, at(kOneSide));
    risk.high = std::max({risk.high, at(1 - kOneSide), binomial_above(limits[j])});
    // Nothing came near, given that the trend may be off here and the other way where it began:
    // zero cannot be excluded.
    const double reached = limits[j] - fit_.level + 2 * kTwoSigma * correlation_.level_error;
    if (reached > fit_.residuals.back()) risk.low = 0;
    risk.low = std::min(risk.low, risk.estimate);
    risk.high = std::max(risk.high, risk.estimate);
    risks.push_back(risk);
  }
  return risks;
}

}  // namespace halfscope::analyzers
