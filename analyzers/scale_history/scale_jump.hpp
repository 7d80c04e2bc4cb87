// SPDX-License-Identifier: Apache-2.0
// A loss scale that begins anew in the middle of a run.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// The first one; empty where the scale grew as dynamic ones grow.
std::optional<ScaleJump> scale_jump(const TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
