// SPDX-License-Identifier: Apache-2.0
#include "analyzers/whole_steps.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "analyzers/formats/whole_fits.hpp"
#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/updates/updates.hpp"

namespace halfscope::analyzers {

using frames::ProgressCallback;
using frames::WholeStep;
using underflow::Analysis;

namespace {

/// How far one step is that two passes look at by turns: the bar never goes back.
class ByTurns {
 public:
  ByTurns(const ProgressCallback& step, double first_share) : step_(step), shares_{first_share, 1} {
    shares_[1] -= first_share;
  }
  ProgressCallback of(std::size_t pass) {
    if (!step_) return {};
    return [this, pass](double part) {
      parts_[pass] = std::clamp(part, parts_[pass], 1.0);
      step_(parts_[0] * shares_[0] + parts_[1] * shares_[1]);
    };
  }

 private:
  const ProgressCallback& step_;
  double shares_[2], parts_[2] = {0, 0};
};

/// The part of the time that updates take, roughly.
double share_of_updates(const Passes& passes) {
  if (passes.what_if == passes.formats) return 0.5;
  return passes.what_if ? 0.95 : 0.05;
}

}  // namespace

WholeFound add_whole_steps(Analysis& analysis, const frames::Selection& selection,
                           const Passes& passes, const formats::FitOptions& options,
                           const frames::Progress& progress, const readers::Logs& opened,
                           const std::function<frames::Progress()>& predicting) {
  std::optional<updates::UpdatePass> updates;
  std::optional<formats::WholePass> whole;
  if (passes.updates) {
    updates.emplace(analysis, selection, updates::UpdatesAsked{.what_if = passes.what_if});
    if (!updates->needs_steps()) updates.reset();
  }
  if (passes.formats || passes.sums) {
    whole.emplace(analysis, selection, passes.formats ? std::optional(options) : std::nullopt);
  }
  std::optional<reduction::ReductionPass> reductions;
  if (passes.reductions) reductions.emplace(analysis, selection, *passes.reductions);
  if (!updates && !whole && !reductions) return {};
  overflow::ScoreBounds scores;
  const auto take = [&](const WholeStep& step) {
    ByTurns turns(step.tell, !updates ? 0 : !whole ? 1 : share_of_updates(passes));
    const ProgressCallback of_updates = turns.of(0), of_whole = turns.of(1);
    const auto beside = [&](const log::NamedTensor& tensor) {
      if (whole) whole->take(step, tensor, of_whole);
    };
    if (updates) updates->take(step, of_updates, beside);
    overflow::for_each_query_and_key(
        step, selection, [&](const frames::WholeTensor& tensor) { scores.take(tensor); }, beside);
    if (whole) whole->take(step, of_whole);
  };
  const auto take_ranks = [&](std::span<const WholeStep> ranks) {
    if (reductions) reductions->take(ranks);
    if (!updates && !whole) return;
    for (const WholeStep& step : ranks) take(step);
  };
  const frames::WholeCountsVisitor counts = {
      [&](const frames::CountedSums& counted) {
        if (whole) whole->take(counted);
      },
      [&](const frames::CountedUpdates& counted) {
        if (updates) updates->take(counted);
      },
      [&](const frames::CountedRows& counted) { scores.take(counted); }};
  for (underflow::LogFindings& log : analysis.logs) {
    if (updates) updates->begin(log);
    if (whole) whole->begin(log);
    scores.begin(log);
    const readers::Log& source = opened.at(log.source);
    if (reductions) reductions->begin(log);
    readers::for_each_whole_step_of_ranks(source, selection, take_ranks, analysis.notes, progress);
    readers::for_each_whole_count(source, selection, counts);
    if (updates) updates->finish_log();
    if (whole) whole->finish_log();
    if (reductions) reductions->finish_log();
  }
  if (updates) updates->finish();
  if (whole) whole->finish();
  WholeFound found{std::move(scores).finish(analysis.target.format), {}};
  if (reductions) {
    const bool predicts = predicting && !passes.reductions->counts.empty();
    found.reductions = reductions->finish(predicts ? predicting() : frames::Progress());
  }
  return found;
}

}  // namespace halfscope::analyzers
