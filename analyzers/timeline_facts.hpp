// SPDX-License-Identifier: Apache-2.0
// What became of the loss scale of a run whose log is another tool's: which steps were skipped, how
// the scale went, where it collapsed, and which tensor drove that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow.hpp"
#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers {

/// The scale is `from` at step `after`, and `to` at step `by`; between, nobody knows.
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
};

/// What of a run's scalars was NaN or infinite.
enum class Quantity : std::uint8_t { loss, gradient_norm, nan_iterations };

struct Nonfinite {
  Quantity of = Quantity::loss;
  std::int64_t first = 0, last = 0;
  std::uint64_t count = 0;     ///< steps that have such a scalar; iterations, of nan_iterations
  std::uint64_t at_skips = 0;  ///< of them: that were skipped, as a dynamic scale does
};

/// What became of a run as far as its loss scale and scalars tell.
enum class RunState : std::uint8_t {
  unknown,     ///< no loss scale and no skipped step is told
  not_needed,  ///< a loss scale of 1 throughout, and no skipped step
  normal,
  slow_start,  ///< most skipped steps are the first ones, while the scale comes down
  collapsed,   ///< collapse_of()
  broken       ///< steps are skipped in vain, or NaN or infinities last to the end
};

/// Most or all steps were skipped, and lowering the scale did not help.
struct SkippedInVain {
  std::int64_t first = 0, last = 0;  ///< among these steps, the log's last ones
  Interval skipped;                  ///< of them
  bool all = false;                  ///< every one was
};

struct TimelineFacts {
  std::string log;
  std::vector<std::string> kinds;
  /// Steps are numbers of entries: the log tells no steps.
  bool numbered = false;
  bool skips_at_least = false;  ///< LogKind::skips_at_least
  std::uint64_t steps = 0;      ///< that have scalars
  std::optional<std::int64_t> first, last;
  std::vector<std::int64_t> skipped;  ///< ascending
  std::vector<SkippedSteps> ranges;   ///< some of these were skipped as well
  Interval skipped_in_all;
  std::optional<std::uint64_t> attempts;  ///< steps from the first to the last, where told
  PrintingRanks ranks;
  bool ended_at_minimum = false;  ///< LogKind::ended_at_minimum
  std::optional<double> scale_first, scale_last, scale_least, scale_most;
  std::vector<ScaleChange> changes;  ///< ascending
  std::vector<ScaleFall> falls;      ///< deepest first, a few
  bool magnitudes = false;           ///< of gradients, at any step
  std::vector<Nonfinite> nonfinite;
  std::optional<SkippedInVain> in_vain;
  RunState state = RunState::unknown;

  /// Whether something is wrong that the first line has to say.
  bool alarming() const;
  /// The first step with a NaN or infinity that no skipped step accounts for.
  std::optional<std::int64_t> nonfinite_since() const;
};

/// The deepest fall to a scale of 1 or less, which scales nothing any more, and from which it did
/// not come back; null where there is none.
const ScaleFall* collapse_of(const TimelineFacts& facts);

/// Of every log that is neither a run log nor of tensors alone, and that tells scalars or skipped
/// steps.
std::vector<TimelineFacts> timeline_facts(const Analysis& analysis);

}  // namespace halfscope::analyzers
