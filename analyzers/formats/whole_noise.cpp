// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/whole_noise.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "analyzers/frames/elements.hpp"
#include "halfscope/array/array.hpp"

namespace halfscope::analyzers::formats {

using frames::ProgressCallback;
using frames::WholeTensor;
using underflow::NoiseRatio;

namespace {

/// Rounds binary64 to binary32 to odd. Rounding the result again to a format that is at least two
/// bits shorter is the same as rounding the original (docs/numerics/emulator.md, section 6).
float to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(x)) --bits;
  return std::bit_cast<float>(bits | 1);
}

/// Returns the sum of value(i)^2 over i < n, in lanes: as fast as memory, always in the same order.
template <class Value>
double sum_of_squares(std::size_t n, const Value& value) {
  std::array<double, kSumLanes> lanes{};
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
      const double x = value(i + lane);
      lanes[lane] += x * x;
    }
  }
  for (; i < n; ++i) {
    const double x = value(i);
    lanes[i % kSumLanes] += x * x;
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

/// Returns 2^k; k must be well inside binary64's range.
double power_of_two(int k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + kBinary64.emax)
                               << kBinary64.fraction_bits());
}

/// Returns the squared errors of rounding values times `factor`. Errors are multiplied by `unit`
/// first, so that squares stay in range.
double noise_of_part(const std::vector<double>& x, const RoundingJob& job, double factor,
                     double unit) {
  std::vector<float> rounded(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) rounded[i] = to_odd(x[i] * factor);
  quantise(job.format, rounded, {.threads = 1});
  const double least = job.subnormals == Subnormals::keep
                           ? 0.0
                           : to_double(boundaries(job.format, 1.0, 1.0, job.subnormals).nonzero);
  return sum_of_squares(x.size(), [&](std::size_t i) {
    const double scaled = x[i] * factor, q = static_cast<double>(rounded[i]);
    return (scaled - (std::abs(scaled) < least ? 0.0 : q)) * unit;
  });
}

/// Reports progress every 1024 joined parts.
class PartsProgress {
 public:
  PartsProgress(std::size_t all, const ProgressCallback& tell) : all_(all), tell_(tell) {}
  void next() {
    constexpr std::size_t kEvery = 1024;
    if (++done_ % kEvery == 0 && tell_) {
      tell_(static_cast<double>(done_) / static_cast<double>(all_));
    }
  }

 private:
  std::size_t all_, done_ = 0;
  const ProgressCallback& tell_;
};

/// Relative error of the sums in decibels; the header explains it.
constexpr double kSlackDb = 1e-11;

}  // namespace

void CompensatedSum::add(double x) {
  const double sum = high + x;
  const double back = sum - high;
  low += (high - (sum - back)) + (x - back);
  high = sum;
}

void add_rounding(RoundingSums& sums, const std::vector<RoundingJob>& jobs,
                  const WholeTensor& tensor, int log2_recorded, int threads,
                  const ProgressCallback& tell) {
  sums.noise.resize(jobs.size());
  using Part = std::vector<double>;  // signal, then the noise of each job
  const auto work = [&](std::size_t part) {
    const std::size_t first = part * kPartElements;
    std::vector<double> x =
        frames::elements(tensor.view, first, std::min(kPartElements, tensor.view.count - first));
    for (double& value : x) value = std::isfinite(value) ? value : 0.0;
    const double unit = power_of_two(sums.reference - log2_recorded);
    Part squared = {sum_of_squares(x.size(), [&](std::size_t i) { return x[i] * unit; })};
    for (const RoundingJob& job : jobs) {
      squared.push_back(noise_of_part(x, job, power_of_two(job.log2_scale - log2_recorded),
                                      power_of_two(sums.reference - job.log2_scale)));
    }
    return squared;
  };
  const std::size_t parts = (tensor.view.count + kPartElements - 1) / kPartElements;
  PartsProgress progress(parts, tell);
  const auto join = [&](const Part& squared) {
    progress.next();
    sums.signal.add(squared[0]);
    for (std::size_t i = 0; i < jobs.size(); ++i) sums.noise[i].add(squared[i + 1]);
  };
  const auto same = [&](std::size_t part) {
    const std::size_t first = part * kPartElements;
    return first + kPartElements <= tensor.view.count &&
           frames::same_bytes(tensor.view, first, first - kPartElements, kPartElements);
  };
  frames::in_order<Part>(parts, threads, work, join, same);
}

std::optional<NoiseRatio> exact_ratio(double signal, double noise) {
  if (!(signal > 0)) return std::nullopt;
  NoiseRatio ratio;
  ratio.exact = true;
  ratio.db = noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  ratio.low_db = ratio.db - kSlackDb;
  ratio.high_db = ratio.db + kSlackDb;
  return ratio;
}

std::optional<NoiseRatio> noise_of(const RoundingSums& sums, std::size_t index) {
  return exact_ratio(sums.signal.value(), sums.noise.at(index).value());
}

}  // namespace halfscope::analyzers::formats
