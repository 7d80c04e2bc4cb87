// SPDX-License-Identifier: Apache-2.0
// A run's own loss scale that begins anew on the way.
#pragma once

#include <optional>

#include "analyzers/replay/policy_advice.hpp"

namespace halfscope::analyzers::replay {

/// The first step at which the recorded scale begins anew, as one does that was not in the
/// checkpoint: it rises by more than the run's policy lets it grow, or falls to where it starts
/// although nothing overflowed.
std::optional<Pitfall> scale_reset(const StepSeries& series);

}  // namespace halfscope::analyzers::replay
