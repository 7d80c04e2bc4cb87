// SPDX-License-Identifier: Apache-2.0
// What became of the loss scale of a run whose log is another tool's: which steps were skipped, how
// the scale went, where it collapsed, and which tensor drove that.
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

/// The scale is `from` at step `after`, and `to` at step `by`; between it is unknown. Of several
/// changes between two steps both are those of all.
struct ScaleChange {
  std::int64_t after = 0;
  std::optional<std::int64_t> by;  ///< empty: at some later step
  double from = 0, to = 0;
};

/// The tensor whose gradients were the first to be infinite or NaN while the scale fell, else the
/// one that came closest to overflow at its step's scale.
struct ScaleDriver {
  std::string tensor;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double max_abs = 0;      ///< unscaled; not finite where some value surely is not
  double scale = 1;        ///< the loss scale of the step, as far as the log tells
  std::uint64_t also = 0;  ///< other tensors that were not finite at that step
  bool before = false;     ///< nothing is recorded while it fell: this is of the last step before
  bool nonfinite_known = true;  ///< false: its infinities were left out of the log
};

/// The scale went down, by a factor of 4 or more, without going up between.
struct ScaleFall {
  std::int64_t first = 0;
  std::optional<std::int64_t> last;  ///< the first step with `to`, where known
  double from = 0, to = 0;
  std::uint64_t reductions = 0;  ///< that the log tells
  std::optional<ScaleDriver> driver;
  bool over = false;  ///< the scale grew again, or must have, twice at least
  /// It follows a scale that began anew (ScaleJump): the scale before that.
  std::optional<double> before_reset = {};

  /// The scale that it fell from, less what a scale that began anew had risen before.
  double net_from() const { return std::min(from, before_reset.value_or(from)); }
};

/// What of a run's scalars was NaN or infinite.
enum class Quantity : std::uint8_t { loss, gradient_norm, nan_iterations, evaluation_loss };

struct Nonfinite {
  Quantity of = Quantity::loss;
  std::int64_t first = 0, last = 0;
  std::uint64_t count = 0;     ///< steps that have such a scalar; iterations, of nan_iterations
  std::uint64_t at_skips = 0;  ///< of them: that were skipped, as a dynamic scale does
  std::optional<std::int64_t> first_applied = {};  ///< the first one that was not
  /// From this step on the log has no finite one any more, apart from skipped steps; empty where
  /// the last one is.
  std::optional<std::int64_t> since = {};
  std::int64_t last_since = 0;
  std::uint64_t count_since = 0;
  std::int64_t last_before = 0;  ///< of those before `since`
  /// The last step with a finite one before `since`, or before the end of the log; empty: none.
  std::optional<std::int64_t> last_finite = {};
  bool finite_loss = false;            ///< since `since` some step has a finite loss
  std::vector<std::int64_t> few = {};  ///< the last steps that count, three at the most
  /// Whether it is there to stay, and not what a scaler skips now and then or at its start.
  bool lasts() const;
};

/// What became of a run as far as its loss scale and scalars tell.
enum class RunState : std::uint8_t {
  unknown,     ///< no loss scale and no skipped step is told, or how many were is unknown
  not_needed,  ///< a loss scale of 1 throughout, and no skipped step
  normal,
  slow_start,  ///< most skipped steps are the first ones, while the scale comes down
  skipping,    ///< TimelineFacts::many_skipped(), or some at a scale of 1 or less
  collapsed,   ///< TimelineFacts::collapse(), or below_one()
  broken       ///< steps are skipped in vain, or NaN or infinities last to the end
};
inline constexpr std::array kRunStates = {
    RunState::unknown,  RunState::not_needed, RunState::normal, RunState::slow_start,
    RunState::skipping, RunState::collapsed,  RunState::broken};
std::string_view name_of(RunState state);  ///< as JSON has it

/// Most or all steps were skipped, and lowering the scale did not help.
struct SkippedInVain {
  /// Among these steps, the log's last ones; without `last` the log ends before it tells their
  /// numbers: applied steps may lie between `first` and the skipped ones.
  std::int64_t first = 0;
  std::optional<std::int64_t> last = {};
  Interval skipped;  ///< of them
  bool all = false;  ///< every one was
};

/// The first steps, skipped while the scale came down.
struct SlowStart {
  std::uint64_t skipped = 0;          ///< where the scale alone tells them: its halvings
  std::int64_t last = 0;              ///< the step until which they are
  std::optional<double> from, scale;  ///< before and after them
};

/// Many steps skipped close to each other, later than at the start: each lowers the scale.
struct SkipBurst {
  std::int64_t first = 0, last = 0;
  std::uint64_t skipped = 0;
};

/// The scale rose further than growth takes it: a scaler that begins anew, as where its state was
/// not in the checkpoint.
struct ScaleJump {
  std::int64_t after = 0, by = 0;
  double from = 0, to = 0;
  bool to_start = false;    ///< to where the run began
  std::uint64_t times = 1;  ///< with later ones
  /// Steps skipped after all of them until the scale was back, or the log ends; empty where the log
  /// does not tell which steps were.
  std::optional<Interval> lost = {};
};

/// Settings of a dynamic loss scale that a run's own scale supports, where no gradients are
/// recorded.
struct ScaleSettings {
  double init = 1;  ///< where the scale settled: it held this for the most steps
  /// Clean steps after which the scale doubled: those, or so many at the most; empty where the log
  /// does not show that.
  std::optional<Interval> window = {};
  /// The window to use instead, where the present one costs more steps than it need.
  std::optional<std::uint64_t> longer = {};
  /// Overflows after which the scale falls: as lines tell, or 2 where some skipped step left it as
  /// it was, above any floor.
  std::int64_t hysteresis = 1;
};

struct TimelineFacts {
  std::string log;
  std::vector<std::string> kinds;
  /// Steps are numbers of entries: the log tells no steps.
  bool numbered = false;
  bool skips_at_least = false;  ///< LogKind::skips_at_least
  std::uint64_t steps = 0;      ///< that have scalars
  std::optional<std::int64_t> first, last;
  std::vector<std::int64_t> skipped;         ///< ascending
  std::vector<frames::SkippedSteps> ranges;  ///< some of these were skipped as well
  std::vector<frames::SkippedSteps> skips;   ///< all of both, by first step: a step is a range
  Interval skipped_in_all;
  bool skips_told = false;           ///< by a counter, messages or scalars: that there is none, too
  std::uint64_t skipped_at_one = 0;  ///< at a loss scale of 1 or less
  std::optional<std::int64_t> first_at_one;  ///< the first step that may be one of them
  std::optional<std::int64_t> counted_from;  ///< LogKind::counted_from
  int scaler = 0;                            ///< LogKind::scaler
  std::vector<frames::OtherScaler> other_scalers;
  /// The steps that the log tells of, and how many they are; empty where it does not say.
  std::optional<std::uint64_t> attempts;
  /// As far as step numbers show, or growth of the scale between skipped steps; 0: nothing does.
  std::uint64_t steps_at_least = 0;
  /// Where nothing but the scale tells of skipped steps: its halvings, each at least one of them.
  std::uint64_t halvings = 0;
  /// As many may have been skipped: those between the lines around these, where the scale may have
  /// grown and fallen unseen, or more, as between other lines it may have, too.
  std::uint64_t halvings_at_most = 0;
  /// That holds if the scale doubles after so many clean steps or more; empty: whatever it does.
  std::optional<std::uint64_t> window_taken = {};
  std::int64_t first_attempt = 0, last_attempt = 0;
  frames::PrintingRanks ranks;
  bool ended_at_minimum = false;  ///< LogKind::ended_at_minimum
  std::optional<double> scale_first, scale_last, scale_least, scale_most;
  std::optional<std::int64_t> scale_first_step;  ///< of scale_first, where it is told of one
  std::vector<ScaleChange> changes;              ///< ascending
  std::vector<ScaleFall> falls;                  ///< deepest first, a few
  /// The scale must have grown after the last one told: so many clean steps follow.
  bool grew_unseen = false;
  bool magnitudes = false;  ///< of gradients, at any step
  std::vector<Nonfinite> nonfinite;
  std::vector<std::string> remarks;                   ///< LogKind::remarks
  std::optional<frames::PrintedLine> nonfinite_line;  ///< LogKind::nonfinite_line
  std::optional<frames::BadLossPart> bad_loss_part;   ///< LogKind::bad_loss_part
  /// The first step of those at the end of the log that have a learning rate or a loss scale and no
  /// loss, although every such step before them has one; empty: no such steps, or few.
  std::optional<std::int64_t> loss_missing_since;
  std::uint64_t losses = 0;  ///< steps that have a training loss
  std::optional<SkippedInVain> in_vain;
  std::optional<SlowStart> slow_start;
  std::optional<ScaleJump> jump;   ///< the first of them
  std::optional<SkipBurst> burst;  ///< where no scale is told, which would show how far it fell
  /// Skipped steps after which the learning rate was another one, of those where it is known on
  /// both sides: the schedule went on without an update.
  std::uint64_t schedule_ahead = 0, schedule_known = 0;
  std::optional<ScaleSettings> settings;
  RunState state = RunState::unknown;

  /// skipped_in_all, where the log may hide more.
  Interval skipped_bounds() const;
  /// Whether something is wrong that the first line has to say.
  bool alarming() const;
  /// The first step with a NaN or infinity that no skipped step accounts for, of those that last
  /// to the end where some do. Evaluations apart.
  std::optional<std::int64_t> nonfinite_since() const;
  /// The last step whose loss and norm are finite, of those that are NaN or infinite from then on
  /// to the end: a checkpoint saved before it holds finite weights. Empty without such an end, or
  /// without a finite step before it.
  std::optional<std::int64_t> last_finite() const;
  /// Whether more steps were surely skipped than growth of a dynamic scale and its start cost: more
  /// than 5 %, and three. Growth skips one step in a window, of 100 to 2000 steps with the
  /// frameworks' settings, two with a hysteresis of 2: 2 % at the most.
  bool many_skipped() const;
  /// Whether surely no more were.
  bool few_skipped() const;
  /// The deepest fall to a scale of 1 or less, which scales nothing any more, or to a thousandth in
  /// the course of the run, by ScaleFall::net_from(), and that is not over; null where there is
  /// none.
  const ScaleFall* collapse() const;
  /// Whether every scale that the log tells is below 1, and not 0: it collapsed before the first.
  bool below_one() const;
  /// The first step of collapse(), or of a log that begins after it; empty if there is none.
  std::optional<std::int64_t> collapsed_since() const;
  /// Whether the scale fell from the first one told on, or some steps later.
  bool at_start(const ScaleFall& fall) const;
  /// Whether a static loss scale above 1 skipped the last steps one and all, or most: a smaller one
  /// may help.
  bool skips_at_static_scale() const;
};

/// Of another tool's log that tells a loss scale, skipped steps, NaN or infinities, or that has
/// scalars alone; empty of others.
std::optional<TimelineFacts> timeline_facts(const underflow::LogFindings& log);

/// What became of a run log's loss scale, by its scalars alone, judged as those of other tools'
/// logs are: nothing of what drove it. Empty without scalars, of other logs, and where they tell
/// nothing.
std::optional<TimelineFacts> run_log_facts(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::scale_history
