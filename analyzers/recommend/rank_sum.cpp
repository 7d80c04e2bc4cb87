// SPDX-License-Identifier: Apache-2.0
// The effect of a sum of weight gradients over data-parallel ranks in the target format.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "analyzers/readers/kinds.hpp"
#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using frames::Frame;
using frames::Selection;
using underflow::Analysis;
using underflow::TensorFindings;

namespace {

/// Returns a hash of the histogram's exact part; the histograms of run logs have no other part.
std::uint64_t digest(const BinadeTable& table) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits, over words
  for (const std::int64_t word : table.encode()) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001b3;
  }
  return hash;
}

/// One tensor at one step over the ranks.
struct Summed {
  long double largest = 0;  ///< sum over ranks of the largest magnitudes, unscaled
  std::uint64_t first = 0;  ///< hash of rank 0's histogram
};

/// Returns true if the tensor's zeros on one rank may be flushed values.
bool may_be_flushed(const TensorFindings& t) {
  return t.zeros_may_be_flushed || t.hidden_by_buckets;
}

/// The gradients of one log's ranks before the sum.
class Ranks {
 public:
  Ranks(const Analysis& analysis, const underflow::LogFindings& log, const Recommendation& advice,
        int divide_log2)
      : analysis_(analysis), scalars_(log), at_(*advice.static_log2), divided_(at_ - divide_log2) {
    for (const TensorFindings& t : log.tensors) tensors_[t.name] = &t;
  }

  void add(std::size_t rank, const Frame& frame) {
    if (frame.role != log::Role::weight_grad) return;
    const auto tensor = tensors_.find(frame.name);
    const bool zeros_unsure = tensor != tensors_.end() && may_be_flushed(*tensor->second);
    const std::uint64_t perhaps = zeros_unsure ? frame.table.zero().high : 0;
    of += frame.table.finite_nonzero() + Interval(0, perhaps);
    alone += Interval(0, perhaps) + flushed(frame, at_);
    before += Interval(0, perhaps) + flushed(frame, divided_);

    const auto [at, is_new] = sums_.try_emplace({frame.step, frame.name});
    if (is_new) at->second.first = digest(frame.table.exact());
    differ = differ || (rank != 0 && digest(frame.table.exact()) != at->second.first);
    at->second.largest += largest(frame, tensor == tensors_.end() ? nullptr : tensor->second);
  }

  /// Returns the largest possible sum, unscaled.
  long double largest_sum() const {
    long double most = 0;
    for (const auto& [key, sum] : sums_) most = std::max(most, sum.largest);
    return most;
  }

  Interval alone, before, of;
  bool differ = false;  ///< some rank's values differ from rank 0's

 private:
  Interval flushed(const Frame& frame, int k) const {
    const Boundaries limits = analysis_.target.boundaries(1.0, frame.scale);
    return classify(frame.table, before_scaling(limits, k)).flushed_to_zero;
  }

  long double largest(const Frame& frame, const TensorFindings* tensor) const {
    const auto& table = frame.table;
    const long double finite =
        table.largest() ? static_cast<long double>(to_double(*table.largest())) / frame.scale : 0;
    if (table.inf().high + table.nan().high == 0) return finite;
    // An infinity in values computed in binary16 is a value of at least 65520 / scale.
    const auto scale = frame.scale != 1.0 ? frame.scale : scalars_.loss_scale(frame.step);
    if (tensor == nullptr || !tensor->computed_in_fp16() || !scale) return finite;
    return std::max<long double>(finite, underflow::infinite_magnitude(*scale).unscaled());
  }

  const Analysis& analysis_;
  underflow::LogScalars scalars_;
  int at_, divided_;
  std::map<std::string, const TensorFindings*> tensors_;
  std::map<std::tuple<std::int64_t, std::string>, Summed> sums_;
};

/// Returns an upper bound of |sum| in the format for any order of the ranks - 1 additions of
/// rounded terms: each rounding adds a factor of at most 1 + 2^-precision (N. J. Higham, SIAM J.
/// Sci. Comput. 14, 1993).
double bound_of(long double sum, std::size_t ranks, Format format) {
  const long double unit = std::ldexp(1.0L, -format.precision);
  const long double roundings = static_cast<long double>(ranks - 1);
  const long double bound = sum * std::exp(roundings * std::log1p(unit));
  return std::nextafter(static_cast<double>(bound), HUGE_VAL);
}

/// Returns the result of one log; empty if its ranks hold equal values, which were summed before.
std::optional<RankSum> of_log(const Analysis& analysis, const Recommendation& advice,
                              const Selection& selection, const underflow::LogFindings& log) {
  if (!log.manifest) return std::nullopt;
  Selection exact = selection;  // the target's boundaries are exact on values
  exact.target = analysis.target.format;
  const frames::Parts parts = readers::ranks_of(readers::Log(log.source), exact);
  const std::size_t ranks = parts.size();
  if (ranks < 2) return std::nullopt;
  const int divide_log2 = static_cast<int>(std::bit_width(ranks - 1));  // ceil(log2 W)
  Ranks found(analysis, log, advice, divide_log2);
  frames::Notes known;  // the notes of this reading are already known from an earlier one
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto take = [&](Frame&& frame) { found.add(rank, frame); };
    parts[rank].read({take, {}, {}, {}}, known, {});
  }
  const long double largest = found.largest_sum();
  if (!found.differ || largest <= 0) return std::nullopt;

  RankSum sum;
  sum.ranks = static_cast<int>(ranks);
  sum.flushed_alone = found.alone;
  sum.flushed_before = found.before;
  sum.of = found.of;
  const Format format = analysis.target.format;
  const double bound = bound_of(largest, ranks, format);
  sum.headroom_after =
      std::log2(to_double(boundaries(format).overflow)) - std::log2(bound) - *advice.static_log2;
  if (std::isfinite(bound)) {
    sum.highest_after_log2 =
        std::min(underflow::kLastLog2Scale,
                 underflow::StepMagnitude{magnitude_of(bound)}.highest_safe_log2(format));
  }
  return sum;
}

}  // namespace

std::optional<RankSum> rank_sum(const Analysis& analysis, const Recommendation& advice,
                                const Selection& selection) {
  if (!advice.static_log2) return std::nullopt;
  std::optional<RankSum> tightest;
  for (const underflow::LogFindings& log : analysis.logs) {
    const auto sum = of_log(analysis, advice, selection, log);
    if (sum && (!tightest || sum->headroom_after < tightest->headroom_after)) tightest = sum;
  }
  return tightest;
}

}  // namespace halfscope::analyzers::recommend
