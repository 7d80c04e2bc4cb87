// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/addend_noise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "analyzers/reduction/steady_math.hpp"
#include "halfscope/number/random.hpp"

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

constexpr std::size_t kTested = std::size_t{1} << 16;  // elements tested, at most
constexpr std::size_t kDrawn = std::size_t{1} << 20;   // noise values of all elements, about
constexpr std::size_t kWindow = std::size_t{1} << 15;  // noise values that one element draws from
constexpr std::size_t kFewestDraws = 16;               // noise values made of one element, at least
constexpr double kSignificantSkew = 3;                 // standard errors
constexpr std::size_t kGroups = 4;  // groups of ranks: one for the sign, others for skewness
constexpr double kInside = 0.05;    // a mean's least distance from the range's ends, as a part
constexpr int kLikelihoodRounds = 40;
constexpr double kExact = 1e-6;

/// Returns the sign of the mean of every fourth rank, times the skewness of the other ranks. The
/// two are independent, so the expected value is 0 if the noise is symmetric or its skewness does
/// not depend on the mean.
double skewness_with_mean(Addends addends, std::size_t i, std::size_t group) {
  double mine = 0, others = 0, count = 0, squares = 0, cubes = 0;
  for (std::size_t r = 0; r < addends.size(); ++r) {
    const auto x = static_cast<double>(addends[r][i]);
    const bool own = r % kGroups == group;
    (own ? mine : others) += x;
    count += own ? 0 : 1;
  }
  for (std::size_t r = 0; r < addends.size(); ++r) {
    if (r % kGroups == group) continue;
    const double rest = static_cast<double>(addends[r][i]) - others / count;
    squares += rest * rest;
    cubes += rest * rest * rest;
  }
  const double skewness = squares > 0 ? cubes / (squares * std::sqrt(squares)) : 0;
  return mine > 0 ? skewness : mine < 0 ? -skewness : 0;
}

bool is_skewed(Addends addends, const std::vector<ModelElement>& elements) {
  double sum = 0, squares = 0;
  for (std::size_t k = 0, step = (elements.size() + kTested - 1) / kTested; k < elements.size();
       k += step) {
    if (elements[k].scale == 0) continue;
    double all = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      all += skewness_with_mean(addends, elements[k].index, g);
    }
    sum += all;
    squares += all * all;
  }
  return sum > kSignificantSkew * std::sqrt(squares);
}

/// Returns the multiplier of empirical likelihood (Owen 1988), with which the weights 1 / (1 +
/// multiplier * distance) make the mean distance 0. distances: values on both sides of 0, from
/// `low` to `high`. Uses Newton's steps, and bisection if they leave the known interval.
double multiplier(std::span<const double> distances, double low, double high) {
  double from = -1 / high, to = -1 / low, at = 0;
  for (int round = 0; round < kLikelihoodRounds; ++round) {
    double sum = 0, slope = 0;
    for (const double x : distances) {
      const double term = x / (1 + at * x);
      sum += term;
      slope += term * term;
    }
    (sum > 0 ? from : to) = at;
    double next = at + sum / slope;
    if (!(next > from && next < to)) next = (from + to) / 2;
    const double step = std::fabs(next - at);
    at = next;
    if (step * (high - low) < kExact) break;
  }
  return at;
}

/// Values with the most likely weights that make their mean 0. If nearly all values have one sign,
/// they are shifted first.
struct Weighted {
  std::vector<double> values, weights;

  void weigh() {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double inside = kInside * (*most - *least);
    const double move = std::max(0.0, inside - *most) + std::min(0.0, -inside - *least);
    const double low = *least + move, high = *most + move;
    for (double& x : values) x += move;
    const double by = multiplier(values, low, high);
    double sum = 0;
    for (std::size_t r = 0; r < values.size(); ++r) sum += weights[r] = 1 / (1 + by * values[r]);
    for (double& w : weights) w /= sum;
  }
};

/// An element, its mean in units of its scale, made positive, and the mean's sign.
struct Place {
  ModelElement* element;
  double mean, sign;
};

std::vector<Place> places_of(AddendModel& model) {
  std::vector<Place> out;
  for (ModelElement& e : model.elements) {
    if (e.scale == 0) continue;
    const double mean = e.mean[static_cast<int>(Spread::middle)] / e.scale;
    out.push_back({&e, std::fabs(mean), mean < 0 ? -1.0 : 1.0});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Place& a, const Place& b) { return a.mean < b.mean; });
  return out;
}

/// Adds `draws` noise values of an element: weighted distances of its values from its mean.
void add_draws(Addends addends, const Place& place, double offset, std::size_t draws, Weighted& of,
               std::vector<float>& noise) {
  const std::size_t ranks = addends.size(), i = place.element->index;
  const double unit = place.sign * place.element->unit;
  for (std::size_t r = 0; r < ranks; ++r) {
    of.values[r] = unit * static_cast<double>(addends[r][i]) - place.mean;
  }
  of.weigh();
  double below = 0;
  std::size_t drawn = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    below += of.weights[r] * static_cast<double>(draws);
    const float x = addends[r][i] == 0 ? kZeroAddend : static_cast<float>(of.values[r]);
    const bool last = r + 1 == ranks;
    for (; drawn < draws && (last || static_cast<double>(drawn) + offset < below); ++drawn) {
      noise.push_back(x);
    }
  }
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

void skew_noise(Addends addends, AddendModel& model) {
  if (model.noise_alone || !is_skewed(addends, model.elements)) return;
  const std::vector<Place> places = places_of(model);
  const std::size_t ranks = addends.size(), draws = std::max(kFewestDraws, ranks);
  const std::size_t donors = std::min(places.size(), kDrawn / draws + 1);
  Weighted of = {std::vector<double>(ranks), std::vector<double>(ranks)};
  for (std::size_t d = 0; d < donors; ++d) {
    const double offset = static_cast<double>(random_word(2, d)) * 0x1p-32;
    add_draws(addends, places[d * places.size() / donors], offset, draws, of, model.noise);
  }
  const std::size_t all = model.noise.size() - model.shared;
  model.drawn = std::min(kWindow, all);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::size_t at = k * donors / places.size() * draws;
    const std::size_t first = at - std::min(at, model.drawn / 2);
    places[k].element->noise = model.shared + std::min(first, all - model.drawn);
  }
}

}  // namespace halfscope::analyzers::reduction
