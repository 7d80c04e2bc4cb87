// SPDX-License-Identifier: Apache-2.0
// A series to replay, for a run whose log has its loss scale and skipped steps but no gradients.
#pragma once

#include <optional>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::replay {

/// Returns the series. An applied step is clean at its scale and below; a skipped step overflows at
/// its scale and above; nothing else is known. If a range has a number of skipped steps, its first
/// ones count as skipped. Empty if the log has no step numbers, no scale, or no data on skips.
std::optional<StepSeries> scale_series(const underflow::LogFindings& log,
                                       const scale_history::TimelineFacts& facts);

}  // namespace halfscope::analyzers::replay
