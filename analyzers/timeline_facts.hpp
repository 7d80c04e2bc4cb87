// SPDX-License-Identifier: Apache-2.0
// What became of the loss scale of a run whose log is another tool's: which steps were skipped, how
// the scale went, where it collapsed, and which tensor drove that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow.hpp"

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
  std::uint64_t skipped_in_all = 0;
  std::optional<double> scale_first, scale_last, scale_least, scale_most;
  std::vector<ScaleChange> changes;  ///< ascending
  std::vector<ScaleFall> falls;      ///< deepest first, a few
  bool magnitudes = false;           ///< of gradients, at any step
};

/// The deepest fall to a scale of 1 or less, which scales nothing any more, and from which it did
/// not come back; null where there is none.
const ScaleFall* collapse_of(const TimelineFacts& facts);

/// Of every log that is neither a run log nor of tensors alone, and that tells scalars or skipped
/// steps.
std::vector<TimelineFacts> timeline_facts(const Analysis& analysis);

}  // namespace halfscope::analyzers
