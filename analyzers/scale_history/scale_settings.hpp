// SPDX-License-Identifier: Apache-2.0
// Settings of a dynamic loss scale that a run's own scale supports, where no gradients are
// recorded.
#pragma once

#include <cstdint>
#include <optional>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;  // underflow.hpp
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::scale_history {

struct TimelineFacts;

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

/// Clean steps after which the scale doubled, or so many at the most, as in ScaleSettings.
std::optional<Interval> growth_window(const underflow::LogFindings& log,
                                      const TimelineFacts& facts);

/// Of a run whose steps the scale decided about; empty where it did not, as where it is constant.
std::optional<ScaleSettings> scale_settings(const underflow::LogFindings& log,
                                            const TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
