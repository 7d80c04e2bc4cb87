// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/flushed.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/lowest_scale.hpp"

namespace halfscope::analyzers::recommend {

using underflow::Analysis;
using underflow::Share;
using underflow::TensorFindings;

namespace {

/// Returns the number of finite values that are neither zero nor flushed.
Interval kept_of(const underflow::Counts& counts, const Classes& classes) {
  const Interval kept = classes.subnormal + classes.normal + classes.overflow;
  const Interval rest = without(counts.finite_nonzero, classes.flushed_to_zero);
  return {std::max(kept.low, rest.low), std::min(kept.high, rest.high)};
}

/// Counts summed over several tensors.
struct Sum {
  Interval count, of, kept;
  bool bounded = false;

  void add(const TensorFindings& tensor, const Classes& classes) {
    // Zeros of values computed in binary16 may be flushed: they only raise the upper bounds.
    const std::uint64_t perhaps = tensor.underflow_identifiable ? 0 : tensor.counts.zero.low;
    const Interval flushed = classes.flushed_to_zero;
    *this += {Interval(flushed.low, flushed.high + perhaps),
              tensor.counts.finite_nonzero + Interval(0, perhaps), kept_of(tensor.counts, classes),
              underflow::is_bounded(tensor)};
  }
  Sum& operator+=(const Sum& other) {
    count += other.count;
    of += other.of;
    kept += other.kept;
    bounded = bounded || other.bounded;
    return *this;
  }
  Share share() const { return {count, of, bounded ? std::optional(kept) : std::nullopt}; }
};
using Sums = std::vector<Sum>;  // one entry per scale

}  // namespace

Share flushed_at(const Analysis& analysis, int k) { return flushed_at(analysis, k, k).front(); }

/// The result is the same for any order in which threads add the counts.
std::vector<Share> flushed_at(const Analysis& analysis, int first, int last) {
  using Range = tbb::blocked_range<std::size_t>;
  constexpr std::size_t kGrain = 256;
  const auto tensors = underflow::loss_scaled_tensors(analysis);
  const Sums none(static_cast<std::size_t>(last - first + 1));
  const auto add_scales = [&](const TensorFindings& tensor, Sums& sums) {
    std::vector<Classes> classes(sums.size());
    for (const underflow::ScaledTable& t : tensor.tables) {
      const Boundaries limits = analysis.target.boundaries(1.0, t.scale);
      for (int k = first; k <= last; ++k) {
        classes[static_cast<std::size_t>(k - first)] +=
            classify(t.table, before_scaling(limits, k));
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(tensor, classes[i]);
  };
  const auto add = [&](const Range& range, Sums sums) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) add_scales(*tensors[i], sums);
    return sums;
  };
  const auto join = [](Sums a, const Sums& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  std::vector<Share> shares;
  for (const Sum& sum : tbb::parallel_reduce(Range(0, tensors.size(), kGrain), none, add, join)) {
    shares.push_back(sum.share());
  }
  return shares;
}

}  // namespace halfscope::analyzers::recommend
