// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/serial.hpp"

#include <algorithm>
#include <cmath>

namespace halfscope::analyzers::recommend {

double inflation_from(std::span<const double> residuals, double from) {
  const std::size_t n = residuals.size();
  const auto whole = static_cast<double>(n);
  const auto reached =
      std::count_if(residuals.begin(), residuals.end(), [from](double e) { return e >= from; });
  const double p = static_cast<double>(reached) / whole;
  double inflation = 1;
  if (p <= 0 || p >= 1) return inflation;
  for (std::size_t lag = 1; lag < n / 4; ++lag) {
    std::size_t both = 0;
    for (std::size_t i = lag; i < n; ++i)
      both += residuals[i] >= from && residuals[i - lag] >= from;
    const double covariance = static_cast<double>(both) / static_cast<double>(n - lag) - p * p;
    if (covariance <= 0) break;
    inflation += 2 * (1 - static_cast<double>(lag) / whole) * covariance / (p * (1 - p));
  }
  return inflation;
}

// The correlation of neighbouring residuals of a line is too low by (2 + 4 r) / n (F. H. C.
// Marriott, J. A. Pope, Biometrika 41, 1954, with the line's second parameter), and their squares
// by the share of the variance that the line took with its two parameters: 2 longer^2 / n.
Autoregression autoregression(std::span<const double> residuals) {
  constexpr double kMostCorrelation = 0.97, kLeastShare = 0.2;
  const auto n = static_cast<double>(residuals.size());
  double squares = 0, products = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    squares += residuals[i] * residuals[i];
    if (i != 0) products += residuals[i] * residuals[i - 1];
  }
  Autoregression found;
  if (squares == 0) return found;
  const double r = (products / squares + 2 / n) / (1 - 4 / n);
  found.correlation = std::clamp(r, 0.0, kMostCorrelation);
  found.longer = std::sqrt((1 + found.correlation) / (1 - found.correlation));
  const double left = std::max(n - 2 * found.longer * found.longer, kLeastShare * n);
  found.deviation = std::sqrt(squares / left);
  return found;
}

}  // namespace halfscope::analyzers::recommend
