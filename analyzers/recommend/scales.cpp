// SPDX-License-Identifier: Apache-2.0
// The effects of each power-of-two scale around the good ones.
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <functional>
#include <utility>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/provenance.hpp"

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

constexpr int kMore = 4;   ///< scales beyond the range on either side
constexpr int kMost = 16;  ///< binades shown below static_scale, if the range is wider

/// Returns log2 of the first and the last scale that are shown.
std::pair<int, int> shown(const Recommendation& advice) {
  const int at = *advice.static_log2;
  const int lowest = std::clamp(advice.lowest_log2.value_or(at), at - kMost, at + kMost);
  const int first = std::min(at, lowest) - kMore;
  const int last = std::max(at + std::max(advice.asked.headroom_bits, 0), lowest) + kMore;
  return {first, last};
}

/// Sets the scales at which a run found steps clean whose gradients were not all read.
void set_clean(const replay::StepSeries& run, LogMaxima& log) {
  for (StepMaximum& step : log.steps) {
    const auto at = std::ranges::lower_bound(run.steps, step.step);
    if (!step.unread || at == run.steps.end() || *at != step.step) continue;
    const double clean = run.seen[static_cast<std::size_t>(at - run.steps.begin())].clean_to;
    if (clean > 0) step.clean_log2 = std::ilogb(clean);
  }
}

std::vector<ScaleEvidence> scale_evidence(const Analysis& analysis, const Recommendation& advice,
                                          const underflow::LostMass& lost) {
  std::vector<ScaleEvidence> scales;
  const auto [first, last] = shown(advice);
  const std::vector<Share> flushed = flushed_at(analysis, first, last);
  for (int k = first; k <= last; ++k) {
    const Share& share = flushed[static_cast<std::size_t>(k - first)];
    ScaleEvidence& scale = scales.emplace_back(k, share.count, share.of, lost.at(k));
    // Among several logs, the log that overflows most easily sets the bound.
    for (const LogMaxima& log : advice.peaks.logs) {
      if (log.steps.empty()) continue;
      const SkipBound bound = skip_bound(log.steps, k);
      // An infinity in binary16 hides the value's size, so the step may overflow at any scale.
      scale.overflow_steps += bound.overflowing();
      if (scale.skip.steps == 0 || bound.high >= scale.skip.high) scale.skip = bound;
    }
  }
  return scales;
}

/// Decides if a run in bfloat16 may use the analysis's format. Empty if the run is not in bfloat16,
/// or the format has bfloat16's exponent range.
std::optional<MayUse> may_use(const underflow::Analysis& analysis, const Recommendation& advice) {
  using Why = MayUse::Why;
  if (wide_range(analysis.target.format) || !underflow::runs_in_bfloat16(analysis)) {
    return std::nullopt;
  }
  if (!advice.overflow_without_cure.empty()) {
    return MayUse{Why::overflows, advice.overflow_without_cure.front()};
  }
  if (!advice.static_log2 || !advice.limited_by) return MayUse{};
  if (!advice.above_target.empty() && !advice.harmless()) {
    return MayUse{Why::flushed,
                  advice.worst_lost ? advice.worst_lost->tensor : advice.above_target.front()};
  }
  return MayUse{Why::fits, advice.limited_by->name};
}

}  // namespace

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

Proportion proportion(std::uint64_t successes, std::uint64_t trials) {
  if (trials == 0) return {};
  using Binomial = boost::math::binomial_distribution<double>;
  const auto k = static_cast<double>(successes), n = static_cast<double>(trials);
  const bool one_sided = successes == 0 || successes == trials;
  const double alpha = (1 - SkipBound::kConfidence) / (one_sided ? 1 : 2);
  return {k / n, successes == 0 ? 0 : Binomial::find_lower_bound_on_p(n, k, alpha),
          successes == trials ? 1 : Binomial::find_upper_bound_on_p(n, k, alpha)};
}

void estimate(SkipBound& bound) {
  const Proportion read = proportion(bound.exceedances, bound.steps);
  // Unread steps that surely overflow count too: the estimate is not below their share.
  const Proportion all =
      proportion(bound.exceedances + bound.unread_exceedances, bound.steps + bound.unread);
  bound.probability = std::max(read.estimate, all.estimate);
  bound.low = std::max(read.low, all.low);
  bound.high = std::max(proportion(bound.exceedances + bound.perhaps, bound.steps).high, all.high);
}

SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale) {
  SkipBound bound;
  for (const StepMaximum& step : steps) {
    const bool overflows = log2_scale > step.highest_log2;
    const bool open = step.is_open(log2_scale);
    ++(open ? bound.unread : bound.steps);
    (open ? bound.unread_exceedances : bound.exceedances) += overflows;
    bound.perhaps += !step.unread && !overflows && step.censored;
  }
  estimate(bound);
  return bound;
}

void add_scales(Recommendation& advice, const Basis& basis,
                std::span<const replay::StepSeries> runs) {
  for (LogMaxima& log : advice.peaks.logs) {
    const auto run = std::ranges::find(runs, log.log, &replay::StepSeries::log);
    if (run != runs.end()) set_clean(*run, log);
  }
  if (advice.static_log2) {
    const Analysis& analysis = basis.analysis;
    const underflow::LostMass lost(underflow::loss_scaled_tensors(analysis), analysis.target);
    if (!advice.needs_no_scale()) advice.scales = scale_evidence(analysis, advice, lost);
    advice.lost_at_1 = lost.at(0);
    advice.worst_lost = underflow::worst_loss(lost.tensors(), analysis.target, *advice.static_log2);
    for (const LogMaxima& log : advice.peaks.logs) {
      if (!log.steps.empty()) advice.steps_left_out += log.left_out.size();
    }
    const auto at =
        std::ranges::find(advice.scales, *advice.static_log2, &ScaleEvidence::log2_scale);
    if (at != advice.scales.end()) {
      advice.lost_at_recommended = at->lost;
      if (at->skip.steps != 0) advice.skip = at->skip;
    }
  }
  advice.may_use = may_use(basis.analysis, advice);
}

void add_cures(Recommendation& advice, const Basis& basis, const frames::Selection& selection) {
  advice.ranks = rank_sum(basis.analysis, advice, selection);
  advice.per_layer = per_layer(basis, advice);
  advice.keep_in_fp32 = keep_in_fp32(basis, advice);
  advice.footprint = footprint(basis.analysis);
}

}  // namespace halfscope::analyzers::recommend
