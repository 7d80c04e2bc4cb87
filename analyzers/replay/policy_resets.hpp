// SPDX-License-Identifier: Apache-2.0
// Detects that a run's own loss scale was reset.
#pragma once

#include <optional>

#include "analyzers/replay/policy_advice.hpp"

namespace halfscope::analyzers::replay {

/// Returns the first step at which the recorded scale is reset, as if it was missing in the
/// checkpoint: it rises by more than the run's policy allows, or falls to its initial value without
/// an overflow. Empty if there is none.
std::optional<Pitfall> scale_reset(const StepSeries& series);

}  // namespace halfscope::analyzers::replay
