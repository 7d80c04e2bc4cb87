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

std::optional<NoiseRatio> exact_ratio(double signal, double noise) {
  if (!(signal > 0)) return std::nullopt;
  NoiseRatio ratio;
  ratio.exact = true;
  ratio.db = noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
  ratio.low_db = ratio.db - kSlackDb;
  ratio.high_db = ratio.db + kSlackDb;
  return ratio;
}

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

namespace {

/// The blocks of a tensor: a fixed number per row, none across rows.
struct BlockGrid {
  std::size_t row = 1;       ///< elements per row
  std::size_t per_row = 1;   ///< blocks per row
  std::size_t per_part = 1;  ///< blocks per part
  std::size_t blocks = 0, parts = 0;

  explicit BlockGrid(const WholeTensor& tensor) {
    if (tensor.view.count == 0) return;
    row = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape.back());
    per_row = block_count(row);
    blocks = tensor.view.count / row * per_row;
    per_part = kPartElements / std::min<std::size_t>(row, kMxBlockSize);
    parts = (blocks + per_part - 1) / per_part;
  }
  std::size_t start(std::size_t block) const {
    return block / per_row * row + block % per_row * kMxBlockSize;
  }
  /// Returns the first block of a part; for the end of the last part, the number of blocks.
  std::size_t block(std::size_t part) const { return std::min(part * per_part, blocks); }
  std::size_t end(std::size_t block, std::size_t elements) const {
    return block == blocks ? elements : start(block);
  }
  /// Returns true if a part has the same blocks and elements as the part before.
  bool same(std::size_t part, const TensorView& view) const {
    const std::size_t before = block(part - 1), at = block(part), next = block(part + 1);
    const std::size_t n = start(at) - start(before);
    if (next - at != per_part || end(next, view.count) - start(at) != n) return false;
    for (std::size_t i = 0; i < per_part; ++i) {
      if (start(at + i) - start(at) != start(before + i) - start(before)) return false;
    }
    return frames::same_bytes(view, start(at), start(before), n);
  }
};

/// Sums over one part in one format.
struct BlockPart {
  std::uint64_t values = 0, flushed = 0, saturated = 0, in_nan = 0;
  double signal = 0, noise = 0;
};

/// Elements of a part, each with the exponent of its block's scale.
struct ScaledPart {
  std::vector<double> x;
  std::vector<int> log2_block;  ///< exponent of the block's largest magnitude, or kNoBlock
  std::uint64_t in_nan = 0, values = 0;
  static constexpr int kNoBlock = std::numeric_limits<int>::max();
};

/// Finds a block's largest magnitude. Sets the elements of a block with infinity or NaN to zero.
void scan_block(ScaledPart& part, std::size_t first, std::size_t end) {
  double largest = 0;
  bool finite = true;
  std::uint64_t values = 0;
  for (std::size_t i = first; i < end; ++i) {
    finite = finite && std::isfinite(part.x[i]);
    if (std::isfinite(part.x[i]) && part.x[i] != 0) ++values;
    largest = std::max(largest, std::abs(part.x[i]));
  }
  (finite ? part.values : part.in_nan) += values;
  const bool nothing = !finite || largest == 0;
  for (std::size_t i = first; i < end; ++i) {
    if (!finite) part.x[i] = 0;
    part.log2_block[i] = nothing ? ScaledPart::kNoBlock : std::ilogb(largest);
  }
}

BlockPart round_blocks(const ScaledPart& part, Format f, double unit) {
  const std::size_t n = part.x.size();
  std::vector<float> rounded(n);
  std::vector<double> scaled(n), back(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool none = part.log2_block[i] == ScaledPart::kNoBlock;
    const int k = none ? 0 : e8m0_exponent(e8m0_from_exponent(part.log2_block[i] - f.emax));
    back[i] = power_of_two(k);
    scaled[i] = part.x[i] * power_of_two(-k);
    rounded[i] = to_odd(scaled[i]);
  }
  quantise(f, rounded, {.modes = {.saturate = true}, .threads = 1});
  const double overflow = to_double(boundaries(f).overflow);
  BlockPart sums{part.values, 0, 0, part.in_nan, 0, 0};
  for (std::size_t i = 0; i < n; ++i) {
    sums.flushed += rounded[i] == 0 && scaled[i] != 0 ? 1 : 0;
    sums.saturated += std::abs(scaled[i]) >= overflow ? 1 : 0;
  }
  sums.signal = sum_of_squares(n, [&](std::size_t i) { return part.x[i] * unit; });
  sums.noise = sum_of_squares(n, [&](std::size_t i) {
    return (scaled[i] - static_cast<double>(rounded[i])) * back[i] * unit;
  });
  return sums;
}

void join_block(BlockSums& sums, const BlockPart& part) {
  sums.counts.values += part.values;
  sums.counts.flushed_to_zero += part.flushed;
  sums.counts.saturated += part.saturated;
  sums.counts.in_nan_blocks += part.in_nan;
  sums.signal.add(part.signal);
  sums.noise.add(part.noise);
}

}  // namespace

void add_blocks(std::array<BlockSums, kMxElements.size()>& sums, const WholeTensor& tensor,
                int log2_recorded, int threads, const ProgressCallback& tell) {
  const BlockGrid grid(tensor);
  using Parts = std::array<BlockPart, kMxElements.size()>;
  const double unscale = power_of_two(-log2_recorded);
  const double unit = power_of_two(sums[0].reference);
  const auto work = [&](std::size_t part_index) {
    const std::size_t block = grid.block(part_index), last = grid.block(part_index + 1);
    const std::size_t first = grid.start(block), end = grid.end(last, tensor.view.count);
    ScaledPart part;
    part.x = frames::elements(tensor.view, first, end - first);
    for (double& x : part.x) x *= unscale;
    part.log2_block.resize(part.x.size());
    for (std::size_t b = block; b < last; ++b) {
      scan_block(part, grid.start(b) - first, grid.end(b + 1, tensor.view.count) - first);
    }
    Parts rounded;
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      rounded[i] = round_blocks(part, find_format(kMxElements[i])->format, unit);
    }
    return rounded;
  };
  PartsProgress progress(grid.parts, tell);
  const auto join = [&](const Parts& parts) {
    progress.next();
    for (std::size_t i = 0; i < parts.size(); ++i) join_block(sums[i], parts[i]);
  };
  const auto same = [&](std::size_t part) { return grid.same(part, tensor.view); };
  frames::in_order<Parts>(grid.parts, threads, work, join, same);
}

std::optional<NoiseRatio> noise_of(const RoundingSums& sums, std::size_t index) {
  return exact_ratio(sums.signal.value(), sums.noise.at(index).value());
}

std::optional<NoiseRatio> noise_of(const BlockSums& sums) {
  return exact_ratio(sums.signal.value(), sums.noise.value());
}

}  // namespace halfscope::analyzers::formats
