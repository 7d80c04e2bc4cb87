// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/addend_model.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/reduction/addend_noise.hpp"
#include "analyzers/reduction/steady_math.hpp"
#include "halfscope/number/random.hpp"

namespace halfscope::analyzers::reduction {
namespace {

constexpr std::size_t kModelElements = std::size_t{1} << 21;
constexpr std::size_t kDonors = 4096;  // elements whose residuals are the noise
constexpr std::uint64_t kRecordings = std::uint64_t{1} << 17;
constexpr double kSignificant = 3;                     // standard errors
constexpr double kFarFromZero = 10;                    // least standard errors of a pool's spread
constexpr double kFewestPools = 4, kSameScale = 0.05;  // limits for the growth of means with scales
constexpr std::size_t kMostPools = 16, kFewestInPool = 64;

/// The values of one element in two halves of the ranks: even and odd ones. The halves agree on
/// what is the element's own; the rest is noise.
struct Halves {
  std::size_t index = 0;
  double mean[2] = {}, squares[2] = {};  ///< sum of squared distances from the half's mean
  double log2_scale = 0;
  double scale = 0;  ///< without the noise of estimation
  double unit = 0;   ///< factor from distances to noise, with the scale's part that is noise

  /// Returns the recorded mean in units of the scale.
  double ratio() const { return (mean[0] + mean[1]) / 2 / scale; }
  double log2_half(int h, std::size_t freedom) const {
    return 0.5 * steady_log2(squares[h] / static_cast<double>(freedom));
  }
};

enum class Kind { noisy, constant, zero, nonfinite };

Kind read(Addends addends, std::size_t i, Halves& out) {
  out.index = i;
  bool zero = true;
  for (std::size_t h = 0; h < 2; ++h) {
    double sum = 0, count = 0;
    for (std::size_t r = h; r < addends.size(); r += 2, ++count) {
      const float x = addends[r][i];
      if (!std::isfinite(x)) return Kind::nonfinite;
      zero = zero && x == 0;
      sum += static_cast<double>(x);
    }
    out.mean[h] = sum / count;
    for (std::size_t r = h; r < addends.size(); r += 2) {
      const double rest = static_cast<double>(addends[r][i]) - out.mean[h];
      out.squares[h] += rest * rest;
    }
  }
  if (zero) return Kind::zero;
  const double squares = out.squares[0] + out.squares[1];
  if (squares == 0) return Kind::constant;
  out.log2_scale = 0.5 * steady_log2(squares / static_cast<double>(addends.size() - 2));
  return Kind::noisy;
}

/// Accumulates means, variances and the covariance of pairs.
struct Pairs {
  double n = 0, sum_a = 0, sum_b = 0, sum_aa = 0, sum_bb = 0, sum_ab = 0;

  void add(double a, double b) {
    ++n;
    sum_a += a;
    sum_b += b;
    sum_aa += a * a;
    sum_bb += b * b;
    sum_ab += a * b;
  }
  double covariance() const { return (sum_ab - sum_a * sum_b / n) / n; }
  double variance_a() const { return (sum_aa - sum_a * sum_a / n) / n; }
};

/// Parts of the variance of log2 of the recorded scales: the elements' own, and noise.
struct Scales {
  double centre = 0, own = 0;  ///< mean of log2; square root of the elements' share
  double noise = 1;            ///< square root of the noise's share

  /// Returns log2 of an element's scale in the model, which varies as the true scales do.
  double of_model(double log2_recorded) const { return centre + own * (log2_recorded - centre); }
};

Scales divide_scales(const std::vector<Halves>& elements, std::size_t ranks) {
  const std::size_t freedom[2] = {(ranks + 1) / 2 - 1, ranks / 2 - 1};
  Pairs halves, whole;
  for (const Halves& e : elements) {
    whole.add(e.log2_scale, 0);
    if (e.squares[0] == 0 || e.squares[1] == 0) continue;
    halves.add(e.log2_half(0, freedom[0]), e.log2_half(1, freedom[1]));
  }
  Scales scales;
  scales.centre = whole.sum_a / whole.n;
  const double variance = whole.variance_a();
  if (variance <= 0 || halves.n < 2) return scales;
  const double share = std::clamp(halves.covariance() / variance, 0.0, 1.0);
  scales.own = std::sqrt(share);
  scales.noise = std::sqrt(1 - share);
  return scales;
}

/// Returns the second moment of the true means on which the halves agree, in its standard errors.
double standard_errors(const std::vector<Halves>& elements) {
  double sum = 0, squares = 0;
  for (const Halves& e : elements) {
    const double product = e.mean[0] / e.scale * (e.mean[1] / e.scale);
    sum += product;
    squares += product * product;
  }
  return squares == 0 ? 0 : sum / std::sqrt(squares);
}

/// Elements of similar scale, with their means in units of the scale. The part of the means'
/// variance that both halves share is the variance of the true means.
struct Pool {
  std::span<Halves> elements;
  double centre = 0, variance = 0, own = 0;  ///< mean, variance of recorded means; true variance

  double share() const { return variance > 0 ? own / variance : 0; }
};

Pool pool_of(std::span<Halves> elements, bool noise_alone) {
  Pairs halves, whole;
  for (const Halves& e : elements) {
    halves.add(e.mean[0] / e.scale, e.mean[1] / e.scale);
    whole.add(e.ratio(), 0);
  }
  if (noise_alone) return {elements, 0, whole.sum_aa / whole.n, 0};
  const double variance = whole.variance_a();
  return {elements, whole.sum_a / whole.n, variance,
          std::clamp(halves.covariance(), 0.0, variance)};
}

/// Returns the number of pools with which the spread of each pool is well known.
std::size_t pools_for(double agreement, std::size_t elements) {
  const double known = agreement / kFarFromZero * (agreement / kFarFromZero);
  const double most = static_cast<double>(std::min(kMostPools, elements / kFewestInPool));
  return static_cast<std::size_t>(std::max(1.0, std::min(known, most)));
}

std::vector<Pool> pools_of(std::vector<Halves>& elements, double agreement) {
  const bool alone = agreement < kSignificant;
  const std::size_t pools = alone ? 1 : pools_for(agreement, elements.size());
  std::vector<Pool> out;
  for (std::size_t p = 0; p < pools; ++p) {
    const std::size_t first = elements.size() * p / pools;
    const std::size_t end = elements.size() * (p + 1) / pools;
    out.push_back(pool_of(std::span(elements).subspan(first, end - first), alone));
  }
  return out;
}

/// Adds noise values: distances of an element's values from the best guess of its mean, in units of
/// the scale. The guess lies between the pool's centre and the recorded mean. Distances are widened
/// to the noise's width: for normal means and noise, the guess removes the fraction share / R of
/// the noise's variance. They include the scale's variance that is not the elements' own.
void add_noise(Addends addends, const Pool& pool, std::size_t step, std::vector<float>& noise) {
  const double share = pool.share();
  const double widen = 1 / std::sqrt(1 - share / static_cast<double>(addends.size()));
  for (std::size_t k = 0; k < pool.elements.size(); k += step) {
    const Halves& e = pool.elements[k];
    const double mean = e.scale * (pool.centre + share * (e.ratio() - pool.centre));
    for (const std::span<const float>& rank : addends) {
      const double rest = static_cast<double>(rank[e.index]) - mean;
      noise.push_back(static_cast<float>(rest * widen * e.unit));
    }
  }
}

/// A simulated recording of an element whose true mean is 0: the recorded scale; the recorded mean
/// and the true scale in units of the model's scale.
struct Recording {
  double log2_scale, mean, scale;
};

/// Returns recordings of the model's elements on `ranks` ranks, with drawn noise, estimated scales.
std::vector<Recording> recordings(const AddendModel& model, const std::vector<Halves>& elements,
                                  const Scales& scales, std::size_t ranks) {
  std::vector<Recording> out;
  std::vector<float> values(ranks);
  std::vector<std::span<const float>> addends;
  for (float& x : values) addends.emplace_back(&x, 1);
  const auto draw = [&](std::uint64_t k, std::size_t size) {
    return static_cast<std::size_t>(std::uint64_t{random_word(1, k)} * size >> 32);
  };
  for (std::uint64_t k = 0; k < kRecordings; ++k) {
    const std::uint64_t at = k * (ranks + 1);
    const double log2_true = scales.of_model(elements[draw(at, elements.size())].log2_scale);
    for (std::size_t r = 0; r < ranks; ++r) {
      values[r] = model.noise[draw(at + 1 + r, model.noise.size())];
    }
    Halves e;
    if (read(addends, 0, e) != Kind::noisy) continue;
    const double recorded = log2_true + e.log2_scale;
    const double scale = steady_exp2(log2_true - scales.of_model(recorded));
    out.push_back({recorded, (e.mean[0] + e.mean[1]) / 2 * scale, scale});
  }
  std::stable_sort(out.begin(), out.end(), [](const Recording& a, const Recording& b) {
    return a.log2_scale < b.log2_scale;
  });
  return out;
}

/// Returns the power of the true scales by which true means grow: the slope, over pools, of the
/// means' spread against the scale, both as logarithms; 1 if too few pools show a spread.
double growth(const std::vector<Pool>& pools) {
  Pairs points;
  for (const Pool& pool : pools) {
    const double scale = steady_log2(pool.elements[pool.elements.size() / 2].scale);
    if (pool.own > 0) points.add(scale, scale + 0.5 * steady_log2(pool.own));
  }
  const double spread = points.n < kFewestPools ? 0 : points.variance_a();
  return spread <= kSameScale ? 1 : std::clamp(points.covariance() / spread, 0.0, 1.0);
}

/// Returns a pool's noise of means, from recordings of similar scale with errors of the same width.
std::vector<NoiseDraw> noise_of(const Pool& pool, std::span<const Recording> recordings,
                                double power) {
  std::vector<NoiseDraw> out;
  Pairs means;
  for (const Recording& r : recordings) {
    out.push_back({r.mean, steady_exp2(power * steady_log2(r.scale))});
    means.add(r.mean, 0);
  }
  const double widen = std::sqrt((pool.variance - pool.own) / std::max(1e-300, means.variance_a()));
  for (NoiseDraw& d : out) d.error *= widen;
  return out;
}

double mean_square_factor(const std::vector<NoiseDraw>& noise) {
  double squares = 0;
  for (const NoiseDraw& d : noise) squares += d.factor * d.factor;
  return squares / static_cast<double>(noise.size());
}

/// Adds the elements of a pool. The low and high means differ by two standard errors in the spread
/// of the means, and in their centre, which is known from `all` elements.
void add_elements(const Pool& pool, double agreement, std::size_t all,
                  const std::vector<NoiseDraw>& noise, AddendModel& model) {
  std::vector<const Halves*> order;
  std::vector<double> observed;
  for (const Halves& e : pool.elements) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(),
                   [](const Halves* a, const Halves* b) { return a->ratio() < b->ratio(); });
  for (const Halves* e : order) observed.push_back(e->ratio());
  const std::vector<double> means =
      deconvolve(observed, noise, pool.own / mean_square_factor(noise));
  const double error = std::min(1.0, 2 / agreement);
  const double shift = std::copysign(
      2 * std::sqrt((pool.variance - pool.own) / static_cast<double>(all)), pool.centre);
  const std::size_t first = model.elements.size();
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double scale = order[k]->scale, rest = means[k] - pool.centre;
    const auto with = [&](double part, double moved) {
      return scale * (pool.centre + moved + std::sqrt(part) * rest);
    };
    model.elements.push_back({{with(1 - error, -shift), with(1, 0), with(1 + error, shift)},
                              scale,
                              order[k]->unit,
                              order[k]->index});
  }
  std::stable_sort(model.elements.begin() + static_cast<std::ptrdiff_t>(first),
                   model.elements.end(),
                   [](const ModelElement& a, const ModelElement& b) { return a.scale < b.scale; });
}

/// Adds elements with means of zero. The high means have the largest spread that the data allow:
/// the absolute value of what the halves agree on, plus two standard errors.
void add_noise_alone(const Pool& pool, double agreement, AddendModel& model) {
  Pairs halves;
  for (const Halves& e : pool.elements) halves.add(e.mean[0] / e.scale, e.mean[1] / e.scale);
  const double one = std::fabs(halves.sum_ab / halves.n / agreement);
  const double most = std::fabs(halves.sum_ab) / halves.n + 2 * one;
  const double factor = std::sqrt(std::min(1.0, most / pool.variance));
  for (const Halves& e : pool.elements) {
    model.elements.push_back({{0, 0, factor * e.scale * e.ratio()}, e.scale, e.unit, e.index});
  }
}

/// Returns the elements with noise, and adds constant ones to the model.
std::vector<Halves> read_elements(Addends addends, AddendModel& model) {
  std::vector<Halves> noisy;
  const std::size_t n = addends[0].size(), step = (n + kModelElements - 1) / kModelElements;
  double zeros = 0;
  for (std::size_t i = 0; i < n; i += step) {
    Halves e;
    switch (read(addends, i, e)) {
      case Kind::nonfinite: break;
      case Kind::zero: ++zeros; break;
      case Kind::constant: {
        const double mean = (e.mean[0] + e.mean[1]) / 2;
        model.elements.push_back({{mean, mean, mean}, 0, 0, i});
        break;
      }
      case Kind::noisy: noisy.push_back(e); break;
    }
  }
  const double all = zeros + static_cast<double>(model.elements.size() + noisy.size());
  model.zero_share = all == 0 ? 0 : zeros / all;
  return noisy;
}

}  // namespace

AddendModel model_addends(Addends addends) {
  AddendModel model;
  std::vector<Halves> elements = read_elements(addends, model);
  if (elements.empty()) return model;
  std::stable_sort(elements.begin(), elements.end(),
                   [](const Halves& a, const Halves& b) { return a.log2_scale < b.log2_scale; });
  const Scales scales = divide_scales(elements, addends.size());
  for (Halves& e : elements) {
    e.scale = steady_exp2(scales.of_model(e.log2_scale));
    e.unit = steady_exp2(scales.noise * (e.log2_scale - scales.centre) - e.log2_scale);
  }
  const double agreement = standard_errors(elements);
  model.noise_alone = agreement < kSignificant;
  const std::vector<Pool> pools = pools_of(elements, agreement);
  const std::size_t donor = std::max<std::size_t>(1, elements.size() / kDonors);
  for (const Pool& pool : pools) add_noise(addends, pool, donor, model.noise);
  model.shared = model.noise.size();
  if (model.noise_alone) {
    add_noise_alone(pools.front(), agreement, model);
    return model;
  }
  const std::vector<Recording> recorded = recordings(model, elements, scales, addends.size());
  const double power = growth(pools);
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const std::size_t first = recorded.size() * p / pools.size();
    const std::size_t end = recorded.size() * (p + 1) / pools.size();
    const auto noise = noise_of(pools[p], std::span(recorded).subspan(first, end - first), power);
    add_elements(pools[p], agreement, elements.size(), noise, model);
  }
  skew_noise(addends, model);
  return model;
}

}  // namespace halfscope::analyzers::reduction
