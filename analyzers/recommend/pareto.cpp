// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace halfscope::analyzers::recommend {
namespace {

/// Below it the exponential's formula is nearer to the truth than the other, rounded.
constexpr double kNoShape = 1e-9;

/// A fitted end is put this far beyond the largest excess, relatively.
constexpr double kBeyond = 1e-6;

double mean_of(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

/// Sum of log(1 + z * x), by products: a logarithm for many factors.
double sum_log1p(std::span<const double> excesses, double z) {
  constexpr double kLarge = 1e200;
  double sum = 0, product = 1;
  for (const double x : excesses) {
    product *= 1 + z * x;
    if (product < kLarge && product > 1 / kLarge) continue;
    sum += std::log(product);
    product = 1;
  }
  return sum + std::log(product);
}

double log_likelihood(const Pareto& p, std::span<const double> excesses, double mean) {
  const double n = static_cast<double>(excesses.size());
  const double start = -n * std::log(p.scale);
  if (std::fabs(p.shape) < kNoShape) return start - n * mean / p.scale;
  const double z = p.shape / p.scale;
  if (1 + z * excesses.back() <= 0) return -std::numeric_limits<double>::infinity();
  return start - (1 + 1 / p.shape) * sum_log1p(excesses, z);
}

}  // namespace

double Pareto::survival(double x) const {
  if (x <= 0) return 1;
  if (std::fabs(shape) < kNoShape) return std::exp(-x / scale);
  const double base = 1 + shape * x / scale;
  return base <= 0 ? 0 : std::exp(-std::log(base) / shape);
}

double Pareto::quantile_above(double p) const {
  if (std::fabs(shape) < kNoShape) return -scale * std::log(p);
  return scale / shape * (std::pow(p, -shape) - 1);
}

Pareto fit_pareto(std::span<const double> excesses) {
  const double n = static_cast<double>(excesses.size());
  const double a0 = mean_of(excesses);
  double a1 = 0, rank = 0;
  for (const double x : excesses) a1 += (1 - (++rank - 0.35) / n) * x;
  a1 /= n;
  const double difference = a0 - 2 * a1;
  if (!(difference > 0)) return {0, a0};  // all excesses alike
  Pareto fit{2 - a0 / difference, 2 * a0 * a1 / difference};
  const double end = excesses.back() * (1 + kBeyond);
  if (fit.shape < 0 && -fit.scale / fit.shape < end) fit.shape = -fit.scale / end;
  return fit;
}

ParetoRegion::ParetoRegion(std::span<const double> excesses, double effective, double deficit) {
  constexpr int kFirstShape = -20, kLastShape = 30;  // of 1/20
  constexpr int kFirstScale = -46, kLastScale = 60;  // log, of 1/20, relative to the mean
  const double mean = mean_of(excesses);
  const double weight = effective / static_cast<double>(excesses.size());
  std::vector<std::pair<double, Pareto>> grid;
  double most = -std::numeric_limits<double>::infinity();
  for (int i = kFirstShape; i <= kLastShape; ++i) {
    for (int j = kFirstScale; j <= kLastScale; ++j) {
      const Pareto p{i / 20.0, mean * std::exp(j / 20.0)};
      const double l = weight * log_likelihood(p, excesses, mean);
      if (l > most) {
        most = l;
        likeliest_ = p;
      }
      grid.emplace_back(l, p);
    }
  }
  for (const auto& [l, p] : grid) {
    if (most - l <= deficit) inside_.push_back(p);
  }
}

ParetoRegion::Range ParetoRegion::survival(double x) const {
  Range range{1, 0};
  for (const Pareto& p : inside_) {
    const double s = p.survival(x);
    range = {std::min(range.low, s), std::max(range.high, s)};
  }
  return range;
}

}  // namespace halfscope::analyzers::recommend
