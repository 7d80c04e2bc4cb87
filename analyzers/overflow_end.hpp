// SPDX-License-Identifier: Apache-2.0
// Runs that never recover.
#pragma once

#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// Of the events that no loss scale cures the first one that lasts to its log's last recorded step;
/// null where there is none, or where it is that step alone.
const overflow::OverflowEvent* lasting(const underflow::Analysis& analysis,
                                       const overflow::OverflowFindings& overflow);

/// lasting(), where it is what is to be said first of a run: not where NaN in the model, which is
/// said anyway, is no later.
const overflow::OverflowEvent* lasting_first(const Study& study);

/// Takes the scale back that gradients of a run that diverges ask for (too_small());
/// `no_scale` is diverges then.
void refuse_divergence(Study& study);

}  // namespace halfscope::analyzers
