// SPDX-License-Identifier: Apache-2.0
// The analyzers together: what the command line, the report and Python ask for. All that they show
// is computed here, once.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/formats/amax_history.hpp"
#include "analyzers/formats/format_fit.hpp"
#include "analyzers/formats/mx_gradients.hpp"
#include "analyzers/formats/quantised.hpp"
#include "analyzers/overflow/attention_scores.hpp"
#include "analyzers/overflow/broken_end.hpp"
#include "analyzers/overflow/layer_shift.hpp"
#include "analyzers/overflow/overflow.hpp"
#include "analyzers/ranks/rank_comparison.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/summed_loss.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/scale_history/carried_scale.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/updates/adam_state.hpp"

namespace halfscope::analyzers {

/// What is to be found beyond what the tables tell. The first four read whole tensors once more:
/// together, by add_whole_steps().
struct Passes {
  bool updates = false;            ///< what becomes of weight updates
  bool what_if = false;            ///< and in other arithmetic, where there are tensors
  bool needs_tensors = false;      ///< a log without them is an error
  bool formats = false;            ///< every format
  bool formats_if_8_bits = false;  ///< the same where the target has 8 bits
  bool sums = false;               ///< lost mass alone
  bool series = false;             ///< Findings::series
  std::optional<reduction::Asked> reductions = {};
  double enough_db = formats::kEnoughDb;  ///< of `formats`
  bool scalars_suffice = false;  ///< a run log without tensors is no error: it can be replayed
};

/// Told what is read next, gives whom to tell how far it has come. May be empty.
using Phases = std::function<frames::Progress(const std::string& what)>;

/// What is found in logs: what `halfscope analyze` shows. Each list by log, those alone that tell
/// something.
struct Findings {
  underflow::Analysis analysis;
  overflow::OverflowFindings overflow;
  std::vector<overflow::LayerShift> shifts;
  std::vector<overflow::AttentionScores> scores;  ///< where whole tensors are read
  std::vector<reduction::Reduction> reductions;   ///< with Passes::reductions
  std::vector<updates::AdamState> adam;
  std::optional<recommend::SummedLoss> summed_loss;
  std::vector<scale_history::TimelineFacts> timelines;      ///< of other tools' logs
  std::vector<scale_history::TimelineFacts> run_timelines;  ///< of run logs: their scalars alone
  /// Of logs whose loss scale did not collapse: a collapse says how those ended.
  std::vector<overflow::BrokenEnd> broken_ends;
  frames::Tool tool = frames::Tool::other;  ///< that wrote the logs; of several the last one there
  std::vector<underflow::TensorPeaks> peaks;
  std::vector<formats::QuantisedLog> quantised;  ///< what FP8 lost, as frameworks measured it
  std::vector<ranks::RankStudy> ranks;           ///< of logs of several
  std::optional<scale_history::CarriedScale> carried_scale;  ///< of the first log that has one
  bool in_bfloat16 = false;  ///< gradients were computed in bfloat16; runs_in_bfloat16()
  std::vector<formats::AmaxHistory> amax_histories;  ///< with Passes::formats
  std::optional<formats::MxGradients> mx_gradients;  ///< with Passes::formats
  double enough_db = formats::kEnoughDb;             ///< Passes::enough_db
  /// Of the gradients' mass at Analysis::loss_scale, where it is a power of two.
  std::optional<MassShare> lost;
  std::optional<underflow::WorstLoss> worst_lost;  ///< at the same scale
  /// The steps of run logs, for a replay. Of binary16 alone, and where no tensors are selected by
  /// name: a policy decides by all gradients, in binary16.
  replay::LogSeries series;

  /// Logs that end in what no loss scale helps against, so that there are no settings to give.
  std::set<std::string> beyond_scales() const;
  /// Whether Adam divided by 0 in this log.
  bool adam_divides_by_zero(const std::string& log) const;
  /// Returns true if some log ends in NaN or infinities that no loss scale cures, or skips steps in
  /// vain: then what is finite is not the whole of it.
  bool ends_broken() const;
};

/// Reads the logs: each value once, and once more where whole tensors are asked for. Where nobody
/// asked for a format (Target::by_default), a run in bfloat16 is judged in bfloat16. Throws
/// log::BadInput.
Findings analyze(const std::vector<std::filesystem::path>& logs, const underflow::Target& target,
                 const frames::Selection& selection, const Passes& passes, const Phases& phases);

/// What follows from an analysis; without a series.
Findings findings_of(underflow::Analysis&& analysis);

/// Everything: what a report shows.
struct Study : Findings {
  recommend::Recommendation advice;           ///< complete
  std::vector<replay::PolicyStudy> policies;  ///< of the logs that can be replayed
  /// Log and reason of run logs that cannot be.
  std::vector<std::pair<std::string, frames::Message>> not_replayed;

  /// OverflowFindings::lasting(), where it is what is to be said first of a run: not where NaN in
  /// the model, which is said anyway, is no later.
  const overflow::OverflowEvent* lasting_first() const;
};

/// What follows from findings. The logs are read again where they are of several ranks. policies:
/// which are replayed over the series, which they take. A log with gaps is not replayed. Throws
/// log::BadInput.
Study study(Findings&& findings, const frames::Selection& selection,
            const underflow::RecommendOptions& options,
            const std::optional<replay::PolicyOptions>& policies = std::nullopt);

/// What `recommend` shows: of policies the run's own and PyTorch's.
Passes recommend_passes();
/// What `report` shows.
Passes report_passes();
Study recommendation(Findings&& findings, const frames::Selection& selection,
                     const underflow::RecommendOptions& options);

/// The same replays, alone. Throws log::BadInput where there are none.
std::vector<replay::PolicyStudy> study_policies(Findings&& findings,
                                                const replay::PolicyOptions& policies);

}  // namespace halfscope::analyzers
