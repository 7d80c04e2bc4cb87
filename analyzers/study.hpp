// SPDX-License-Identifier: Apache-2.0
// The entry points of the command line, the reports and Python; all that they show is computed
// here.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/formats/eight_bits.hpp"
#include "analyzers/formats/format_fit.hpp"
#include "analyzers/formats/quantised.hpp"
#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/overflow/overflow.hpp"
#include "analyzers/ranks/rank_comparison.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/adam_state.hpp"
#include "analyzers/weights/claims.hpp"
#include "analyzers/weights/moved.hpp"

namespace halfscope::analyzers {

/// The analyses to run in addition to the histograms. `updates`, `formats`, `sums` and `reductions`
/// read the whole tensors once more, all in one pass: add_whole_steps().
struct Passes {
  bool updates = false;            ///< counts lost weight updates
  bool what_if = false;            ///< also in other arithmetic, if the log has whole tensors
  bool needs_tensors = false;      ///< a log without whole tensors is an error
  bool formats = false;            ///< compares every number format
  bool formats_if_8_bits = false;  ///< sets `formats` if the target has 8 bits
  bool sums = false;               ///< measures lost mass, without `formats`
  bool series = false;             ///< fills Findings::series
  std::optional<reduction::ReductionOptions> reductions = {};
  double sufficient_snr_db = formats::kEnoughDb;    ///< Findings::sufficient_snr_db, an SNR
  std::vector<formats::RecipeChoice> recipes = {};  ///< FitOptions::recipes, with `formats`
  bool scalars_suffice = false;  ///< accepts run logs that have scalars only: they can be replayed
};

/// Called before each pass with its name; returns its progress callback. Empty: reports nothing.
using PhaseCallback = std::function<frames::Progress(const std::string& what)>;

/// How the runs end: the facts that decide an answer. Each set has names of logs.
struct Verdict {
  /// Runs that end in NaN or infinities that no loss scale cures, or skip steps in vain. Their
  /// finite values are not the whole of it.
  std::set<std::string> broken;
  /// Runs that end in a failure which no loss scale prevents; these get no settings.
  std::set<std::string> beyond_scales;
  std::set<std::string> adam_divides_by_zero;
};

/// All results of `halfscope analyze`. Each vector has one entry per log that has such results, in
/// the order of the logs.
struct Findings {
  underflow::Analysis analysis;
  overflow::OverflowFindings overflow;
  std::vector<overflow::LayerShift> shifts;
  std::vector<overflow::AttentionScores> scores;  ///< filled if whole tensors are read
  std::vector<reduction::Reduction> reductions;   ///< filled if Passes::reductions is set
  std::vector<updates::AdamState> adam;
  std::vector<weights::Movement> movements;  ///< filled if Passes::updates is set
  /// FP32 weights and optimizer state, one entry for each log and kind with whole tensors of
  /// several distinct values. Filled if Passes::updates is set.
  std::vector<weights::Claim> claims;
  std::optional<recommend::SummedLoss> summed_loss;
  std::vector<scale_history::TimelineFacts> timelines;      ///< from logs of other tools
  std::vector<scale_history::TimelineFacts> run_timelines;  ///< from the scalars of run logs
  /// Logs without a collapse of the loss scale; a collapse already says how the run ended.
  std::vector<overflow::BrokenEnd> broken_ends;
  frames::Tool tool = frames::Tool::other;  ///< wrote the logs; of several tools the last in Tool
  std::vector<underflow::TensorPeaks> peaks;
  std::vector<formats::QuantisedLog> quantised;  ///< FP8 losses that the framework measured
  std::vector<ranks::RankStudy> ranks;           ///< logs of several ranks
  std::optional<scale_history::CarriedScale> carried_scale;  ///< from the first log that has one
  bool in_bfloat16 = false;  ///< runs_in_bfloat16(): gradients were computed in bfloat16
  std::vector<formats::AmaxHistory> amax_histories;  ///< filled if Passes::formats is set
  std::optional<formats::MxGradients> mx_gradients;  ///< filled if Passes::formats is set
  double sufficient_snr_db = formats::kEnoughDb;     ///< Passes::sufficient_snr_db
  /// Lost share of the gradients' mass at Analysis::loss_scale; empty if that is no power of two.
  std::optional<MassShare> lost;
  std::optional<underflow::WorstLoss> worst_lost;  ///< largest loss of one tensor at that scale
  /// The steps of run logs, for replays. Filled only if the target is binary16 and no tensors are
  /// selected by name, because a policy decides by all gradients in binary16.
  replay::LogSeries series;
  Verdict verdict;
};

/// Reads the logs: each value once, and again if whole tensors are requested. If the target is the
/// default (Target::by_default), a run in bfloat16 is judged in bfloat16. Throws log::BadInput.
Findings analyze(const std::vector<std::filesystem::path>& logs, const underflow::Target& target,
                 const frames::Selection& selection, const Passes& passes,
                 const PhaseCallback& phases);

/// Returns the findings of an existing analysis; `series` stays empty.
Findings findings_of(underflow::Analysis&& analysis);

/// All results that a report shows.
struct Study : Findings {
  recommend::Recommendation advice;           ///< a complete recommendation
  std::vector<replay::PolicyStudy> policies;  ///< one per log that can be replayed
  /// Names of run logs that cannot be replayed, each with the reason.
  std::vector<std::pair<std::string, frames::Message>> not_replayed;

  /// Returns true if values are NaN, infinite or overflow, whatever the loss scale.
  bool broken() const {
    return advice.nan_in_model || !advice.overflow_without_cure.empty() || !verdict.broken.empty();
  }
};

/// Returns everything that follows from the findings. Reads logs of several ranks again.
/// `policies`: the policies to replay over the series; the replays consume the series. Without a
/// value nothing is replayed. Logs with gaps are not replayed. Throws log::BadInput.
Study study(Findings&& findings, const frames::Selection& selection,
            const underflow::RecommendOptions& options,
            const std::optional<replay::PolicyOptions>& policies = std::nullopt);

/// Returns the passes that `recommend` shows.
Passes recommend_passes();
/// Returns the passes that `report` shows.
Passes report_passes();
Study recommendation(Findings&& findings, const frames::Selection& selection,
                     const underflow::RecommendOptions& options);

/// Returns only the replays, also of logs that have scalars but no gradients. Throws log::BadInput
/// if no log can be replayed.
std::vector<replay::PolicyStudy> study_policies(Findings&& findings,
                                                const replay::PolicyOptions& policies);

}  // namespace halfscope::analyzers
