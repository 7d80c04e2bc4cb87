// SPDX-License-Identifier: Apache-2.0
// The scalars of a run log, judged as those of other tools' logs are.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Of every run log that has scalars: these alone, as another tool's log. timeline_facts() of one
/// says what became of its loss scale; it tells no tensors, so nothing of what drove it.
std::vector<underflow::Analysis> run_log_scalars(const underflow::Analysis& analysis);

/// Whether a static loss scale above 1 skipped the last steps one and all, or most: a smaller one
/// may help.
bool skips_at_static_scale(const TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
