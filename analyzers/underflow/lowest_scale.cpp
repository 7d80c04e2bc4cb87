// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/lowest_scale.hpp"

#include <algorithm>

namespace halfscope::analyzers::underflow {
namespace {

bool within_target(std::uint64_t flushed, std::uint64_t n, double most_flushed) {
  return static_cast<long double>(flushed) <=
         static_cast<long double>(most_flushed) * static_cast<long double>(n);
}

/// Returns true if more than the target share of a tensor is flushed at loss scale 2^k.
bool above_target(const TensorFindings& t, const Target& target, int k, double most_flushed,
                  Take take) {
  const Interval flushed = t.without_noise(t.classes_at(target, k).flushed_to_zero);
  const std::uint64_t perhaps_zero = t.counts.zero.high - t.counts.zero.low;
  const std::uint64_t n = t.without_noise(t.counts.finite_nonzero).low;
  const std::uint64_t most = n + perhaps_zero;
  if (take == Take::worst) return !within_target(flushed.high, most, most_flushed);
  if (take == Take::best) return !within_target(flushed.low, most, most_flushed);
  return !within_target(flushed.high - std::min(flushed.high, perhaps_zero), n, most_flushed);
}

}  // namespace

bool is_bounded(const TensorFindings& t) { return t.hidden_by_buckets || !t.counts.zero.exact(); }

std::vector<std::string> names_above_target(const std::vector<const TensorFindings*>& tensors,
                                            const Target& target, int k, double most_flushed) {
  std::vector<std::string> names;
  for (const TensorFindings* t : tensors) {
    const Take take = t->hidden_by_buckets ? Take::best : Take::zeros;
    if (above_target(*t, target, k, most_flushed, take)) names.push_back(t->name);
  }
  return names;
}

std::optional<int> lowest_log2(const std::vector<const TensorFindings*>& tensors,
                               const Target& target, double most_flushed, Take take) {
  int k = kFirstLog2Scale;
  for (const TensorFindings* t : tensors) {  // a larger scale never flushes more
    while (above_target(*t, target, k, most_flushed, take)) {
      if (++k > kLastLog2Scale) return std::nullopt;
    }
  }
  return k;
}

std::optional<int> lowest_log2_of_peaks(const Analysis& analysis) {
  std::optional<int> lowest;
  const Magnitude kept = analysis.target.boundaries(1.0, 1.0).nonzero;
  for (const LogFindings& log : analysis.logs) {
    for (const frames::StepPeak& peak : log.peaks) {
      if (!is_gradient(peak.role) || peak.tensor.empty() || peak.max_abs == 0) continue;
      if (!peak.min_abs_nonzero || !(*peak.min_abs_nonzero > 0)) return std::nullopt;
      const Magnitude m = magnitude_of(*peak.min_abs_nonzero);
      const int k = kept.exponent - m.exponent + (m.fraction < kept.fraction ? 1 : 0);
      if (k > kLastLog2Scale) return std::nullopt;
      lowest = std::max(lowest.value_or(kFirstLog2Scale), k);
    }
  }
  return lowest;
}

}  // namespace halfscope::analyzers::underflow
