// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/flushed.hpp"

#include <algorithm>

#include "analyzers/underflow/lowest_scale.hpp"

namespace halfscope::analyzers::recommend {
namespace {

/// Finite values that are neither zero nor flushed.
Interval kept_of(const underflow::Counts& counts, const Classes& classes) {
  const Interval kept = classes.subnormal + classes.normal + classes.overflow;
  const Interval rest = without(counts.finite_nonzero, classes.flushed_to_zero);
  return {std::max(kept.low, rest.low), std::min(kept.high, rest.high)};
}

void add_share(underflow::Share& share, Interval& kept, const underflow::TensorFindings& tensor,
               const Classes& classes) {
  // Zeros of values computed in binary16 may be flushed values: counted as perhaps.
  const std::uint64_t perhaps = tensor.underflow_identifiable ? 0 : tensor.counts.zero.low;
  share.count += Interval(classes.flushed_to_zero.low, classes.flushed_to_zero.high + perhaps);
  share.of += tensor.counts.finite_nonzero + Interval(0, perhaps);
  kept += kept_of(tensor.counts, classes);
  if (underflow::is_bounded(tensor)) share.kept.emplace();  // told once all are added
}

}  // namespace

underflow::Share flushed_at(const underflow::Analysis& analysis, int k) {
  underflow::Share share;
  Interval kept;
  for (const underflow::TensorFindings& t : analysis.tensors()) {
    if (t.loss_scaled) add_share(share, kept, t, t.classes_at(analysis.target, k));
  }
  if (share.kept) share.kept = kept;
  return share;
}

}  // namespace halfscope::analyzers::recommend
