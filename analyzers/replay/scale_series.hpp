// SPDX-License-Identifier: Apache-2.0
// A run whose log has its loss scale and its skipped steps, and no gradients, as a series to
// replay.
#pragma once

#include <optional>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::replay {

/// A step that was applied is clean at its scale and at all below; one that was skipped overflows
/// at its scale and at all above. All else is unknown. Of steps of which some were skipped the
/// first ones count as these. Empty where the log does not tell steps, or no scale of any.
std::optional<StepSeries> scale_series(const underflow::LogFindings& log,
                                       const scale_history::TimelineFacts& facts);

}  // namespace halfscope::analyzers::replay
