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
#include "analyzers/weights/claims.hpp"
#include "analyzers/weights/moved.hpp"

namespace halfscope::analyzers {

using frames::ProgressCallback;
using frames::WholeStep;
using underflow::Analysis;

namespace {

/// Progress of one step that two passes read in turns. The reported fraction never decreases.
class TwoPassProgress {
 public:
  TwoPassProgress(const ProgressCallback& step, double first_share)
      : step_(step), shares_{first_share, 1} {
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

/// Returns the approximate share of the time that updates need.
double share_of_updates(const Passes& passes) {
  if (passes.what_if == passes.formats) return 0.5;
  return passes.what_if ? 0.95 : 0.05;
}

/// Returns true if the logs may have whole tensors that claims are about. A run log may have whole
/// tensors without a histogram; in any other log all tensors are known.
bool has_state(const Analysis& analysis) {
  return analysis.has_run_log() ||
         std::ranges::any_of(analysis.tensors(), [](const underflow::TensorFindings& t) {
           const bool is_state = t.role == log::Role::weight ||
                                 t.role == log::Role::master_weight ||
                                 t.role == log::Role::optimizer_state;
           return is_state && t.source_dtype == Dtype::f32;
         });
}

/// The requested passes over whole tensors.
class WholePasses {
 public:
  WholePasses(Analysis& analysis, const frames::Selection& selection, const Passes& passes,
              const formats::FitOptions& options)
      : selection_(selection), passes_(passes) {
    if (passes.updates) {
      updates_.emplace(analysis, selection, updates::UpdateRequest{.what_if = passes.what_if});
      if (!updates_->needs_steps()) updates_.reset();
    }
    if (passes.formats || passes.sums) {
      whole_.emplace(analysis, selection, passes.formats ? std::optional(options) : std::nullopt);
    }
    if (passes.reductions) reductions_.emplace(analysis, selection, *passes.reductions);
    if (passes.updates && has_state(analysis)) claims_.emplace(selection);
  }
  bool empty() const { return !updates_ && !whole_ && !reductions_ && !claims_; }

  void begin(underflow::LogFindings& log) {
    if (passes_.updates) {
      moved_.emplace(selection_, weights::MovedOptions{.stalls = false, .skip_misfits = true});
      moved_->begin(log.name);
    }
    if (updates_) updates_->begin(log);
    if (whole_) whole_->begin(log);
    if (reductions_) reductions_->begin(log);
    scores_.begin(log);
    if (claims_) claims_->begin(log.name);
  }

  void take(std::span<const WholeStep> ranks) {
    if (reductions_) reductions_->take(ranks);
    if (reductions_ || updates_ || whole_ || claims_) {
      for (const WholeStep& step : ranks) take(step);
    }
  }

  frames::WholeCountsVisitor counts() {
    return {[this](const frames::CountedSums& counted) {
              if (whole_) whole_->take(counted);
            },
            [this](const frames::CountedUpdates& counted) {
              if (updates_) updates_->take(counted);
            },
            [this](const frames::CountedRows& counted) { scores_.take(counted); }};
  }

  void finish_log(frames::Notes& notes) {
    if (auto found = moved_ ? std::move(*moved_).finish() : std::nullopt) {
      notes.add_all(std::exchange(found->notes, {}));
      movements_.push_back(std::move(*found));
    }
    if (updates_) updates_->finish_log();
    if (whole_) whole_->finish_log();
    if (reductions_) reductions_->finish_log();
    if (claims_) claims_->finish_log();
  }

  WholeTensorResults finish(Format target, const std::function<frames::Progress()>& predicting) {
    if (updates_) updates_->finish();
    if (whole_) whole_->finish();
    WholeTensorResults found{std::move(scores_).finish(target), {}, std::move(movements_), {}};
    if (claims_) found.claims = std::move(*claims_).finish();
    if (!reductions_) return found;
    const bool predicts = predicting && !passes_.reductions->counts.empty();
    found.reductions = reductions_->finish(predicts ? predicting() : frames::Progress());
    return found;
  }

 private:
  void take(const WholeStep& step) {
    TwoPassProgress turns(step.tell, !updates_ ? 0 : !whole_ ? 1 : share_of_updates(passes_));
    const ProgressCallback of_updates = turns.of(0), of_whole = turns.of(1);
    // The values of other logs were read once more, for their histograms.
    const bool moves = moved_ && step.run != nullptr;
    const auto formats = [&](const log::NamedTensor& tensor) {
      if (whole_) whole_->take(step, tensor, of_whole);
      if (moves) moved_->take(step, tensor.name);
    };
    const auto beside = [&](const log::NamedTensor& tensor) {
      formats(tensor);
      if (claims_) claims_->take(step, tensor);
    };
    if (reductions_) reductions_->take(step, beside);
    if (updates_) updates_->take(step, of_updates, beside);
    if (updates_ || whole_) {
      overflow::for_each_query_and_key(
          step, selection_, [&](const frames::WholeTensor& tensor) { scores_.take(tensor); },
          beside);
    }
    if (claims_) claims_->take(step, formats);
    if (moves) moved_->take(step);
    if (whole_) whole_->take(step, of_whole);
  }

  const frames::Selection& selection_;
  const Passes& passes_;
  std::optional<updates::UpdatePass> updates_;
  std::optional<weights::MovedPass> moved_;
  std::vector<weights::Movement> movements_;
  std::optional<formats::WholePass> whole_;
  std::optional<reduction::ReductionPass> reductions_;
  std::optional<weights::ClaimsPass> claims_;
  overflow::ScoreBounds scores_;
};

}  // namespace

WholeTensorResults add_whole_steps(Analysis& analysis, const frames::Selection& selection,
                                   const Passes& passes, const formats::FitOptions& options,
                                   const frames::Progress& progress, const readers::Logs& opened,
                                   const std::function<frames::Progress()>& predicting) {
  WholePasses all(analysis, selection, passes, options);
  if (all.empty()) return {};
  const auto take = [&](std::span<const WholeStep> ranks) { all.take(ranks); };
  for (underflow::LogFindings& log : analysis.logs) {
    const readers::Log& source = opened.at(log.source);
    all.begin(log);
    readers::for_each_whole_step_of_ranks(source, selection, take, analysis.notes, progress);
    readers::for_each_whole_count(source, selection, all.counts());
    all.finish_log(analysis.notes);
  }
  return all.finish(analysis.target.format, predicting);
}

}  // namespace halfscope::analyzers
