// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/tail.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyzers/recommend/serial.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::recommend {
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

std::size_t distinct(std::span<const double> values) {
  return std::set<double>(values.begin(), values.end()).size();
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

/// most: with every factor at its upper end at once. Where the estimate is next to nothing, squares
/// of logarithms add up to more.
Proportion capped(Proportion p, double most) {
  p.high = std::max(std::min(p.high, most), p.estimate);
  return p;
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
  const auto n = static_cast<double>(residuals.size());
  const Autoregression ar = autoregression(residuals);
  const double deviation = ar.deviation * ar.longer;
  trend_error_ = time_squares_ > 0 ? deviation / std::sqrt(time_squares_) : 0;
  correlation_.level_error = std::hypot(deviation / std::sqrt(n), trend_error_ * times_.back());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  correlation_.inflation = inflation_from(residuals, std::nextafter(fit_.threshold, kInfinity));
  // Block length of a first-order autoregression: E. Carlstein, Ann. Stat. 14, 1986.
  const double r = ar.correlation;
  const double length = std::cbrt(n) * std::pow(2 * r / (1 - r * r), 2.0 / 3);
  correlation_.block =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(length)), 1, residuals.size() / 5);
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

Proportion Tail::by_counting(double limit) const {
  const auto share_from = [&](double x) {
    return share(static_cast<double>(count_from(fit_.residuals, x)), residuals_.size());
  };
  const double x = limit - fit_.level;
  const double margin = kTwoSigma * correlation_.level_error;
  const double n = static_cast<double>(residuals_.size()) /
                   std::max(correlation_.inflation, inflation_from(residuals_, x));
  const double here = share_from(x), above = share_from(x - margin);
  const Proportion counted = binomial(here * n, n);
  if (here <= 0) return {0, 0, std::max(counted.high, above)};
  return capped(product({counted, {1, share_from(x + margin) / here, above / here}}),
                binomial(above * n, n).high);
}

Proportion Tail::by_likelihood(double limit, const ParetoRegion& region) const {
  const double n = static_cast<double>(residuals_.size()) / correlation_.inflation;
  const double x = limit - fit_.level;
  const double margin = kTwoSigma * correlation_.level_error;
  const double over = share(static_cast<double>(exceedances_), residuals_.size());
  Proportion threshold = binomial(over * n, n);
  const ParetoRegion::Range tail = region.survival(x - fit_.threshold);
  const double best = region.likeliest().survival(x - fit_.threshold);
  // Beyond the end of the likeliest: no ratio to it exists, only upper ends.
  if (best <= 0) return {0, 0, threshold.high * tail.high};
  const auto shifted = [&](double by) {
    return region.likeliest().survival(x + by - fit_.threshold);
  };
  return capped(product({threshold,
                         {best, tail.low, tail.high},
                         {1, shifted(margin) / best, shifted(-margin) / best}}),
                threshold.high * region.survival(x - margin - fit_.threshold).high);
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

Reach Tail::reach(double limit, const ParetoRegion& region,
                  const std::vector<double>& resampled) const {
  const auto at = [&](double p) { return resampled[static_cast<std::size_t>(p * kReplicates)]; };
  const Proportion counted = by_counting(limit);
  const bool in_tail = limit - fit_.level > fit_.threshold;
  Proportion fitted = in_tail ? by_likelihood(limit, region) : counted;
  fitted.estimate = fit_.reaching(limit, exceedances_);
  fitted.low = std::min({fitted.low, at(kOneSide), fitted.estimate});
  fitted.high = std::max({fitted.high, at(1 - kOneSide), binomial_above(limit), fitted.estimate});
  // Nothing came near, given that the trend may be off here and the other way where it began:
  // zero cannot be excluded.
  const double reached = limit - fit_.level + 2 * kTwoSigma * correlation_.level_error;
  if (reached > fit_.residuals.back()) fitted.low = 0;
  const Proportion whatever = {fitted.estimate, std::min(fitted.low, counted.low),
                               std::max(fitted.high, counted.high)};
  return {fitted, whatever};
}

// Where the ends are found in one way and in another, they may rise with the limit. There they are
// widened until no higher limit has a higher end. Whole binades from each limit are looked at too,
// so that a scale's ends are the same whichever other scales were asked for.
std::vector<double> Tail::ladder(std::span<const double> limits) const {
  constexpr double kFarthest = 64;  // binades
  const double least = fit_.level + fit_.residuals.front();
  double most = fit_.level + fit_.residuals.back();
  if (fit_.excess.shape < 0) {
    const double end = fit_.threshold - fit_.excess.scale / fit_.excess.shape;
    most = std::max(most, fit_.level + end);
  }
  most = std::min(most + 2, least + kFarthest);
  std::vector<double> steps(limits.begin(), limits.end());
  for (const double limit : limits) {
    const double ahead = std::ceil(least - limit);
    for (int i = 0; limit + ahead + i <= most; ++i) steps.push_back(limit + ahead + i);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::vector<Reach> Tail::reaching(std::span<const double> limits) const {
  std::vector<double> excesses;
  for (std::size_t i = residuals_.size() - exceedances_; i < residuals_.size(); ++i) {
    excesses.push_back(fit_.residuals[i] - fit_.threshold);
  }
  const double effective = static_cast<double>(exceedances_) / correlation_.inflation;
  const ParetoRegion region(excesses, effective, kDeficit);
  const std::vector<double> steps = ladder(limits);
  const auto resampled = bootstrap(steps);
  std::vector<Reach> each;
  for (std::size_t j = 0; j < steps.size(); ++j) {
    each.push_back(reach(steps[j], region, resampled[j]));
  }
  for (const auto which : {&Reach::fitted, &Reach::whatever}) {
    for (std::size_t j = 1; j < each.size(); ++j) {
      (each[j].*which).low = std::min((each[j].*which).low, (each[j - 1].*which).low);
      const std::size_t down = each.size() - 1 - j;
      (each[down].*which).high = std::max((each[down].*which).high, (each[down + 1].*which).high);
    }
  }
  std::vector<Reach> asked;
  for (const double limit : limits) {
    const auto at = std::lower_bound(steps.begin(), steps.end(), limit) - steps.begin();
    asked.push_back(each[static_cast<std::size_t>(at)]);
  }
  return asked;
}

}  // namespace halfscope::analyzers::recommend
