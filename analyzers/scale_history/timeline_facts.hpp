// SPDX-License-Identifier: Apache-2.0
// The loss scale and the skipped steps of a run: which steps were skipped, how
// the scale changed, where it collapsed, which tensor was the cause, and the
// state that follows from these.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"
#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::scale_history {

/// The loss scale that a step's scalars have.
struct ScaleAtStep {
  std::int64_t step = 0;
  double scale = 1;
};

/// The scale is `from` at step `after`, and `to` at step `by`. Between the two
/// it is unknown, and may have changed several times.
struct ScaleChange {
  std::int64_t after = 0;
  std::optional<std::int64_t> by;  ///< empty: at some later step
  double from = 0, to = 0;
};

/// The tensor whose gradients were the first to be infinite or NaN while the
/// scale fell, or else the one that came closest to overflow at its step's
/// scale.
struct ScaleDriver {
  std::string tensor;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double max_abs = 0;           ///< unscaled; infinite or NaN if some value surely is
  bool nonfinite_known = true;  ///< false: the log leaves out its infinities
  double scale = 1;             ///< the step's loss scale, or the nearest one before it
  std::uint64_t also = 0;       ///< other tensors with NaN or infinities at that step
  bool before = false;          ///< no magnitude is recorded while it fell: the step is
                                ///< the last before
};

/// The scale went down by a factor of 4 or more, without going up between.
struct ScaleFall : ScaleChange {
  std::uint64_t reductions = 0;  ///< that the log shows
  std::optional<ScaleDriver> driver = {};
  bool over = false;                        ///< later the scale was four times as large as `to`, or
                                            ///< must have been
  std::optional<double> before_reset = {};  ///< the scale before the ScaleJump that it follows

  /// The scale that it fell from, without what a scale that began anew had
  /// risen before.
  double net_from() const { return std::min(from, before_reset.value_or(from)); }
};

/// The scalars that may be NaN or infinite.
enum class Quantity : std::uint8_t { loss, gradient_norm, nan_iterations, evaluation_loss };

/// The NaN and infinite values of one quantity over a run.
struct Nonfinite {
  Quantity of = Quantity::loss;
  std::int64_t first = 0, last = 0;
  std::uint64_t count = 0;     ///< steps with such a value; of nan_iterations, iterations
  std::uint64_t at_skips = 0;  ///< the part of `count` that is of skipped steps
  std::optional<std::int64_t> first_applied = {};  ///< the first one whose step was not skipped
  /// The first step, skipped ones apart, after which no value is finite. Empty:
  /// the last value is.
  std::optional<std::int64_t> since = {};
  std::int64_t last_since = 0;    ///< the last step with such a value, from `since` on
  std::uint64_t count_since = 0;  ///< as `count`, from `since` on
  std::int64_t last_before = 0;   ///< the last step with such a value before `since`
  /// The last step with a finite value before `since`, or before the log's end.
  std::optional<std::int64_t> last_finite = {};
  bool finite_loss = false;            ///< some step from `since` on has a finite loss
  std::vector<std::int64_t> few = {};  ///< the last steps of `count`, three at the most

  /// Returns true for a failure that stays, other than what a scaler skips now
  /// and then or at its start.
  bool lasts() const;
};

enum class RunState : std::uint8_t {
  unknown,     ///< the log has neither a loss scale nor skipped steps, or not how
               ///< many were skipped
  not_needed,  ///< a loss scale of 1 throughout, and no skipped step
  normal,
  slow_start,  ///< most skipped steps are the first ones, while the scale comes
               ///< down
  skipping,    ///< TimelineFacts::many_skipped(), or some steps at a scale of 1 or
               ///< less
  collapsed,   ///< TimelineFacts::collapse(), or below_one()
  broken       ///< steps are skipped in vain, or NaN or infinities last to the end
};
inline constexpr std::array kRunStates = {
    RunState::unknown,  RunState::not_needed, RunState::normal, RunState::slow_start,
    RunState::skipping, RunState::collapsed,  RunState::broken};
std::string_view name_of(RunState state);  ///< as JSON has it

/// The scale rose further than growth takes it: the scaler began anew, for
/// example because its state was not in the checkpoint. `by` is never empty.
struct ScaleJump : ScaleChange {
  bool to_start = false;    ///< to the scale that the run began with
  std::uint64_t times = 0;  ///< this one and later ones
  /// Steps skipped after all of them until the scale was back, or the log ends.
  /// Empty: the log does not say which steps were skipped.
  std::optional<Interval> lost = {};
};

/// Settings of a dynamic loss scale that the run's own scale supports, without
/// gradients.
struct ScaleSettings {
  double init = 1;  ///< the scale that most steps were applied at
  /// Clean steps before the scale doubles. Empty: the log does not show that.
  std::optional<Interval> window = {};
  std::optional<std::uint64_t> longer = {};  ///< a window that skips fewer steps
  /// Overflows after which the scale falls: as lines say, or 2 if a skipped
  /// step left the scale unchanged above any floor.
  std::int64_t hysteresis = 1;
};

struct TimelineFacts {
  std::string log;
  std::vector<std::string> kinds;  ///< LogKind::name
  bool numbered = false;           ///< the log has no steps: entries are numbered from 0
  bool skips_at_least = false;     ///< LogKind::skips_at_least
  std::uint64_t steps = 0;         ///< that have scalars
  std::optional<std::int64_t> first, last;
  std::vector<std::int64_t> skipped;         ///< steps by their scalars, ascending
  std::vector<frames::SkippedSteps> ranges;  ///< LogFindings::skips
  std::vector<frames::SkippedSteps> skips;   ///< `skipped` and `ranges`, by first step
  Interval skipped_in_all;
  bool skips_told = false;           ///< the log reports skipped steps, perhaps that there are none
  std::uint64_t skipped_at_one = 0;  ///< at a loss scale of 1 or less
  std::optional<std::int64_t> first_at_one;  ///< the first step that may be one of them
  std::optional<std::int64_t> counted_from;  ///< LogKind::counted_from
  int scaler = 0;                            ///< LogKind::scaler
  std::vector<frames::OtherScaler> other_scalers;
  std::optional<std::uint64_t> attempts;  ///< the number of steps; empty: the log does not say
  std::int64_t first_attempt = 0,
               last_attempt = 0;  ///< the first and last of `attempts`
  /// Steps that step numbers show, or growth of the scale between skipped
  /// steps.
  std::uint64_t steps_at_least = 0;
  /// If skips_told is false: halvings of the scale, each at least one skipped
  /// step. At the most, as many as the steps around them or growth that no line
  /// shows allow.
  Interval halvings;
  /// The number of clean steps before the scale doubles that `halvings`
  /// assumes; empty: none.
  std::optional<std::uint64_t> window_taken = {};
  frames::PrintingRanks ranks;
  bool ended_at_minimum = false;    ///< LogKind::ended_at_minimum
  std::vector<ScaleAtStep> scales;  ///< that scalars have, ascending
  std::optional<double> scale_first, scale_last, scale_least,
      scale_most;                                ///< with `ranges`
  std::optional<std::int64_t> scale_first_step;  ///< the step of scale_first; empty: unknown
  std::vector<ScaleChange> changes;              ///< ascending
  std::vector<ScaleFall> falls;                  ///< deepest first, at most five
  bool grew_unseen = false;                      ///< so many clean steps follow the last scale that
                                                 ///< it must have grown
  bool magnitudes = false;                       ///< the log has magnitudes of gradients
  std::vector<Nonfinite> nonfinite;
  std::vector<std::string> remarks;                   ///< LogKind::remarks
  std::optional<frames::PrintedLine> nonfinite_line;  ///< LogKind::nonfinite_line
  std::optional<frames::BadLossPart> bad_loss_part;   ///< LogKind::bad_loss_part
  /// The first of the last steps, if these have a learning rate and no loss,
  /// and the steps before them have both.
  std::optional<std::int64_t> loss_missing_since;
  std::uint64_t losses = 0;  ///< steps that have a training loss
  /// Most or all of the log's last steps, skipped although the scale was
  /// lowered or cannot be. Without `last` the log ends before it says their
  /// numbers: applied steps may lie between.
  std::optional<frames::SkippedSteps> in_vain;
  /// The first steps, skipped while the scale came down; known steps or
  /// halvings of the scale.
  std::optional<frames::SkippedSteps> slow_start;
  /// Many steps skipped close to each other, later than at the start, in a log
  /// without scales.
  std::optional<frames::SkippedSteps> burst;
  std::optional<ScaleJump> jump;  ///< the first of them
  /// Skipped steps for which the learning rate is known at the next step too,
  /// and those after which it differs: the schedule went on without an update.
  std::uint64_t schedule_known = 0, schedule_ahead = 0;
  std::optional<ScaleSettings> settings;
  RunState state = RunState::unknown;

  Interval skipped_bounds() const;  ///< skipped_in_all, and what the log may hide
  /// Returns true if something is wrong that the first line has to say.
  bool alarming() const;
  /// The first step with a NaN or infinity that was not skipped, evaluations
  /// apart. If some last to the end, the first of these.
  std::optional<std::int64_t> nonfinite_since() const;
  /// The last step whose loss and norm are finite before those that last to the
  /// end: a checkpoint saved before it holds finite weights. Empty without such
  /// an end or step.
  std::optional<std::int64_t> last_finite() const;
  /// Returns true if surely more steps were skipped than a dynamic scale costs:
  /// more than 5 %, and three. Growth costs 2 % at the most: two steps in a
  /// window of 100 with a hysteresis of 2.
  bool many_skipped() const;
  bool few_skipped() const;  ///< surely no more steps than that were skipped
  /// The deepest fall that is not over and by net_from() leads to 1 or less,
  /// or, later than at the start, to a thousandth; null: none.
  const ScaleFall* collapse() const;
  /// Returns true if all scales are above 0 and below 1: it collapsed before
  /// the log begins.
  bool below_one() const;
  /// The first step of collapse(), or of a log for which below_one() holds.
  std::optional<std::int64_t> collapsed_since() const;
  /// Returns true if the scale fell within the log's first steps.
  bool at_start(const ScaleFall& fall) const;
  bool all_in_vain() const;  ///< every step of in_vain was skipped
  /// Returns true if a static loss scale above 1 skipped the last steps: a
  /// smaller one may help.
  bool skips_at_static_scale() const;
};

/// The facts of another tool's log. Empty if it has no kinds, or if it reports
/// neither a loss scale, skipped steps, NaN nor infinities and has more than
/// scalars.
std::optional<TimelineFacts> timeline_facts(const underflow::LogFindings& log);

/// The same of a run log's scalars alone, without drivers. Empty without
/// scalars, and for other logs.
std::optional<TimelineFacts> run_log_facts(const underflow::LogFindings& log);

/// Steps skipped one after the other at scales that did not rise: at each,
/// gradients times the scale overflowed, or held infinities or NaN.
struct SkipEpisode {
  double least = 1;  ///< a step was skipped at this scale or a smaller one: the last one's
  double most = 1;   ///< the first one's
  /// The first and last step that the one at `least` may be; one step if it is
  /// known.
  std::int64_t first = 0;
  std::optional<std::int64_t> last;  ///< empty: the log ends before it says
};

/// The episodes of a log, ascending, without steps whose loss is NaN or
/// infinite. Each skipped step is taken to halve the scale, as in every scaler
/// whose logs are read (docs/logs.md).
std::vector<SkipEpisode> skip_episodes(const underflow::LogFindings& log,
                                       const TimelineFacts& facts);

/// Steps whose gradients, taken as unscaled, would have overflowed binary16 at
/// the step's loss scale, although the steps were not skipped.
struct CarriedScale {
  std::string log;
  std::string tag = {};  ///< the scalar that has the loss scale; empty: none
  std::uint64_t steps = 0;
  std::uint64_t of = 0;  ///< steps that have gradients and a loss scale
};

/// Empty unless a tenth of the steps, and two at least, are such steps. A run
/// log has none.
std::optional<CarriedScale> carried_scale(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::scale_history
