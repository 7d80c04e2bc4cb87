// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/order_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/reduction/steady_math.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::analyzers::reduction {
namespace {

// Constants of the limit. If a partial sum P has a magnitude of at least 2^e, the error of an
// addition is at most u 2^e, so its variance is u^2 4^e / 3. Over partial sums that grow from 0,
// the mean of 4^e is at most 0.605 of the mean of P^2: the variance is at most (u P)^2 / 5.
constexpr double kVariance = 0.2;
constexpr double kSquares = 3;      // sum of squares of addends, in S^2 / K
constexpr double kNormal = 4.8916;  // P(|N(0, 1)| > x) = 1e-6
constexpr double kLogistic =
    4.6182;  // ln(2e6 - 1) / pi: the same quantile of the logistic law of scale 1/pi
constexpr std::size_t kOrders = 4096, kBatch = 1024;
constexpr double kRanges = 2;

/// The limits of a difference, in random orders and in every order.
struct Limits {
  double random = 0;  ///< NaN: unknown
  double every = 0;
};

double ulp_at(Format f, double x) {
  const int exponent = x == 0 ? f.emin() : std::max(f.emin(), std::ilogb(x));
  return std::ldexp(1.0, exponent - f.fraction_bits());
}

/// Returns the largest change of a result by rounding it to the stored format.
double storing(const Sums& sums, Format stored, double x) {
  const bool holds =
      stored.precision >= sums.format.precision && stored.emin() <= sums.format.emin();
  return holds ? 0 : ulp_at(stored, x) / 2;
}

/// Returns the smallest sum of magnitudes from which a result can be computed.
double least_magnitudes(const Sums& sums, double result) {
  return std::fabs(result) / (1 + static_cast<double>(sums.length - 1) * sums.unit());
}

Limits limits_of(RandomLimit& random, double a, double b, const std::optional<double>& magnitudes) {
  const Sums& sums = random.sums();
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  if (!magnitudes) {
    const double least = least_magnitudes(sums, std::min(std::fabs(a), std::fabs(b)));
    return {random(least, least).value_or(unknown), std::numeric_limits<double>::infinity()};
  }
  return {random(*magnitudes, std::max(std::fabs(a), std::fabs(b))).value_or(unknown),
          bound_of_every_order(sums, *magnitudes)};
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// One element of both results.
struct Pair {
  float a, b;
  double storing;  ///< largest part of their difference that storing may have caused
  std::optional<double> magnitudes;
};

/// Returns the magnitudes; empty if they are unknown or cannot be those of A's addends.
std::optional<double> usable_magnitudes(const Sums& sums, const Pair& pair) {
  if (!pair.magnitudes || !std::isfinite(*pair.magnitudes)) return std::nullopt;
  const double result = std::max(0.0, std::fabs(static_cast<double>(pair.a)) - pair.storing);
  if (*pair.magnitudes < least_magnitudes(sums, result)) return std::nullopt;
  return pair.magnitudes;
}

void judge_element(RandomLimit& random, const Pair& pair, std::size_t i, OrderVerdict& out) {
  if (same(pair.a, pair.b)) {
    ++out.within;
    return;
  }
  const double a = static_cast<double>(pair.a), b = static_cast<double>(pair.b);
  const double difference = std::max(0.0, std::fabs(a - b) - pair.storing);
  if (!std::isfinite(difference)) {
    ++out.between;
    ++out.nonfinite;
    return;
  }
  const std::optional<double> magnitudes = usable_magnitudes(random.sums(), pair);
  if (pair.magnitudes && !magnitudes) ++out.unusable;
  const Limits limits = limits_of(random, a, b, magnitudes);
  const double limit = std::isnan(limits.random) ? limits.every : limits.random;
  if (difference / limit > out.worst_ratio) {
    out.worst_ratio = difference / limit;
    out.worst = i;
  }
  if (difference <= limits.random) {  // false if the limit is unknown
    ++out.within;
  } else if (difference > limits.every) {
    ++out.above;
  } else {
    ++out.between;
    if (magnitudes && !std::isnan(limits.random)) ++out.beyond_random;
    out.magnitudes_missing = out.magnitudes_missing || !magnitudes;
  }
}

/// Sets order[i] to the addend at place i of random order `k` (R. A. Fisher, F. Yates; Durstenfeld
/// 1964).
void shuffle(std::vector<std::size_t>& order, std::uint64_t seed, std::uint64_t k) {
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    const std::uint32_t word = random_word(seed, k * order.size() + i - 1);
    std::swap(order[i - 1], order[std::uint64_t{word} * i >> 32]);
  }
}

/// Returns the sums in kOrders random orders.
std::vector<float> random_orders(Format f, std::span<const float> addends, std::uint64_t seed) {
  std::vector<std::vector<float>> places(addends.size(), std::vector<float>(kBatch));
  const std::vector<std::span<const float>> spans(places.begin(), places.end());
  std::vector<std::size_t> order(addends.size());
  std::vector<float> results(kOrders);
  for (std::size_t first = 0; first < kOrders; first += kBatch) {
    for (std::size_t k = 0; k < kBatch; ++k) {
      shuffle(order, seed, first + k);
      for (std::size_t i = 0; i < order.size(); ++i) places[i][k] = addends[order[i]];
    }
    halfscope::reduction::reduce(f, spans, {}, std::span(results).subspan(first, kBatch));
  }
  return results;
}

}  // namespace

double Sums::unit() const { return std::ldexp(1.0, -format.precision); }

double bound_of_every_order(const Sums& sums, double magnitudes) {
  return 2 * static_cast<double>(sums.length - 1) * sums.unit() * magnitudes;
}

// In a random order, the partial sums are k / K of the result s plus a Brownian bridge B, whose
// variance is the sum of squares. Given these, the difference of two orders' errors is normal; its
// variance is kVariance u^2 times the sum of the squared partial sums of both orders. s adds 2 K
// s^2 / 3 to that sum. The bridges add (integral of B1^2 + integral of B2^2) K times the sum of
// squares; a normal variable with the variance in brackets has the characteristic function t / sinh
// t, the logistic law of scale 1 / pi. The two parts are added (Minkowski).
std::optional<double> random_limit(const Sums& sums, double magnitudes, double result) {
  if (!sums.few()) return std::nullopt;
  const auto k = static_cast<double>(sums.length);
  const double drift = kNormal * std::sqrt(2 * kVariance * k / 3) * std::min(result, magnitudes);
  const double bridge = kLogistic * std::sqrt(kVariance * kSquares) * magnitudes;
  return std::min(bound_of_every_order(sums, magnitudes), sums.unit() * (drift + bridge));
}

double simulated_limit(Format f, std::span<const float> addends, std::uint64_t seed) {
  const std::vector<float> results = random_orders(f, addends, seed);
  if (!std::all_of(results.begin(), results.end(), [](float x) { return std::isfinite(x); })) {
    return std::numeric_limits<double>::infinity();
  }
  const auto [least, most] = std::minmax_element(results.begin(), results.end());
  const double low = static_cast<double>(*least), high = static_cast<double>(*most);
  const double largest = std::max(std::fabs(low), std::fabs(high));
  return std::max(kRanges * (high - low), ulp_at(f, largest));
}

std::optional<double> RandomLimit::operator()(double magnitudes, double result) {
  if (sums_.few()) return random_limit(sums_, magnitudes, result);
  if (!sums_.has_random_limit()) return std::nullopt;
  const double ratio = magnitudes > 0 ? std::min(1.0, result / magnitudes) : 0;
  // Places are denser near 0, where values cancel.
  const double place = static_cast<double>(simulated_.size() - 1) * std::sqrt(ratio);
  const double most = std::max(simulated(static_cast<std::size_t>(std::floor(place))),
                               simulated(static_cast<std::size_t>(std::ceil(place))));
  return std::min(bound_of_every_order(sums_, magnitudes), most * magnitudes);
}

double RandomLimit::simulated(std::size_t ratio) {
  std::optional<double>& known = simulated_[ratio];
  if (known) return *known;
  const double part = static_cast<double>(ratio) / static_cast<double>(simulated_.size() - 1);
  const double negative = (1 - part * part) / 2;
  const auto uniform = [](std::uint64_t seed, std::uint64_t i) {
    return (random_word(seed, i) + 0.5) * 0x1p-32;
  };
  // A few addends differ much between draws, so the largest limit of several draws is used.
  const std::size_t draws = std::clamp<std::size_t>(1024 / sums_.length, 1, 64);
  known = 0;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    std::vector<float> addends;
    for (std::size_t i = draw * sums_.length; i < (draw + 1) * sums_.length; ++i) {
      const double magnitude = -kLn2 * steady_log2(uniform(2, i));
      addends.push_back(static_cast<float>(uniform(3, i) < negative ? -magnitude : magnitude));
    }
    quantise(sums_.format, addends, {.threads = 1});
    double magnitudes = 0;
    for (const float x : addends) magnitudes += std::fabs(static_cast<double>(x));
    known = std::max(*known, simulated_limit(sums_.format, addends) / magnitudes);
  }
  return *known;
}

OrderVerdict judge_orders(RandomLimit& limit, const Results& a, const Results& b,
                          std::span<const float> magnitudes) {
  const Sums& sums = limit.sums();
  if (sums.length == 0) throw std::invalid_argument("halfscope: sums of no addends");
  const std::size_t n = a.values.size();
  if (n != b.values.size() || (!magnitudes.empty() && magnitudes.size() != n)) {
    throw std::invalid_argument("halfscope: results of " + std::to_string(n) + " and " +
                                std::to_string(b.values.size()) + " elements, magnitudes of " +
                                std::to_string(magnitudes.size()));
  }
  OrderVerdict out;
  out.elements = n;
  for (std::size_t i = 0; i < n; ++i) {
    Pair pair{a.values[i], b.values[i], 0, {}};
    pair.storing = storing(sums, a.stored, pair.a) + storing(sums, b.stored, pair.b);
    if (!magnitudes.empty()) pair.magnitudes = static_cast<double>(magnitudes[i]);
    judge_element(limit, pair, i, out);
  }
  if (out.between != 0) out.verdict = Verdict::cannot_tell;
  if (out.above != 0) out.verdict = Verdict::above;
  return out;
}

}  // namespace halfscope::analyzers::reduction
