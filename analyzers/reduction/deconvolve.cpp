// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/deconvolve.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "analyzers/reduction/steady_math.hpp"

namespace halfscope::analyzers::reduction {
namespace {

constexpr double kStep = 1.0 / 12;  // distance of bins, in units of asinh
constexpr double kLinear = 2;       // bins are linear up to this many deviations of the error
constexpr int kDeconvolutionRounds = 30;
constexpr double kFloor = 1e-4;  // weight of the observed distribution in the start: no bin is zero

using Shares = std::vector<double>;

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  const auto n = static_cast<double>(values.size());
  const double mean = sum / n;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return {mean, squares / n};
}

/// Returns the values, moved to a mean and scaled linearly to a variance.
std::vector<double> scaled(std::span<const double> values, double mean, double variance) {
  const Moments own = moments(values);
  const double factor = own.variance > 0 ? std::sqrt(variance / own.variance) : 0;
  std::vector<double> out;
  out.reserve(values.size());
  for (const double x : values) out.push_back(mean + factor * (x - own.mean));
  return out;
}

/// A grid with bins of equal width near zero and of equal ratio far from it.
class Grid {
 public:
  Grid(double unit, double low, double high)
      : unit_(unit),
        first_(std::floor(place(low))),
        bins_(static_cast<std::size_t>(std::floor(place(high)) - first_) + 1) {}

  std::size_t bins() const { return bins_; }
  std::size_t bin(double x) const {
    const double at =
        std::clamp(std::floor(place(x)) - first_, 0.0, static_cast<double>(bins_ - 1));
    return static_cast<std::size_t>(at);
  }
  /// Returns a value within a bin. inside: the place, from 0 to 1.
  double value(std::size_t bin, double inside) const {
    const double power = steady_exp2((first_ + static_cast<double>(bin) + inside) * kStep / kLn2);
    return unit_ * (power - 1 / power) / 2;
  }
  Shares shares(std::span<const double> values) const {
    Shares out(bins_);
    for (const double x : values) out[bin(x)] += 1.0 / static_cast<double>(values.size());
    return out;
  }

 private:
  double place(double x) const {
    const double y = std::fabs(x) / unit_;
    return std::copysign(steady_log2(y + std::sqrt(y * y + 1)) * kLn2 / kStep, x);
  }

  double unit_, first_;
  std::size_t bins_;
};

/// Returns the distribution of observed values for true values of bin b: rows[b][observed].
std::vector<Shares> kernel_of(const Grid& grid, std::span<const NoiseDraw> noise) {
  std::vector<Shares> rows(grid.bins(), Shares(grid.bins()));
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const double truth = grid.value(b, 0.5);
    for (const NoiseDraw& draw : noise) {
      rows[b][grid.bin(truth * draw.factor + draw.error)] +=
          1.0 / static_cast<double>(noise.size());
    }
  }
  return rows;
}

void improve(Shares& truth, const Shares& observed, const std::vector<Shares>& kernel) {
  Shares ratio(observed.size());
  for (std::size_t b = 0; b < truth.size(); ++b) {
    for (std::size_t o = 0; o < ratio.size(); ++o) ratio[o] += truth[b] * kernel[b][o];
  }
  for (std::size_t o = 0; o < ratio.size(); ++o)
    ratio[o] = ratio[o] > 0 ? observed[o] / ratio[o] : 0;
  double sum = 0;
  for (std::size_t b = 0; b < truth.size(); ++b) {
    double factor = 0;
    for (std::size_t o = 0; o < ratio.size(); ++o) factor += ratio[o] * kernel[b][o];
    sum += truth[b] *= factor;
  }
  for (double& share : truth) share /= sum;
}

/// Returns n values at equal steps of probability.
std::vector<double> quantiles(const Shares& shares, const Grid& grid, std::size_t n) {
  std::vector<double> out;
  out.reserve(n);
  std::size_t b = 0;
  double below = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    while (b + 1 < shares.size() && below + shares[b] < wanted) below += shares[b++];
    const double inside = shares[b] > 0 ? std::clamp((wanted - below) / shares[b], 0.0, 1.0) : 0.5;
    out.push_back(grid.value(b, inside));
  }
  return out;
}

double deviation_of(std::span<const NoiseDraw> noise) {
  double squares = 0;
  for (const NoiseDraw& draw : noise) squares += draw.error * draw.error;
  return std::sqrt(squares / static_cast<double>(noise.size()));
}

}  // namespace

std::vector<double> deconvolve(std::span<const double> observed, std::span<const NoiseDraw> noise,
                               double variance) {
  const double mean = moments(observed).mean, deviation = deviation_of(noise);
  const std::vector<double> shrunk = scaled(observed, mean, variance);
  if (variance <= 0 || deviation <= 0) return shrunk;
  const Grid grid(kLinear * deviation, observed.front(), observed.back());
  const Shares target = grid.shares(observed);
  const std::vector<Shares> kernel = kernel_of(grid, noise);
  Shares truth = grid.shares(shrunk);
  for (std::size_t b = 0; b < truth.size(); ++b) {
    truth[b] = (1 - kFloor) * truth[b] + kFloor * target[b];
  }
  for (int round = 0; round < kDeconvolutionRounds; ++round) improve(truth, target, kernel);
  return scaled(quantiles(truth, grid, observed.size()), mean, variance);
}

}  // namespace halfscope::analyzers::reduction
