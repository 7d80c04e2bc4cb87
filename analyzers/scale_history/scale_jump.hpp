// SPDX-License-Identifier: Apache-2.0
// A loss scale that begins anew in the middle of a run.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Sets TimelineFacts::jump, where the scale did not grow as dynamic ones grow, and
/// ScaleFall::before_reset. Needs TimelineFacts::settings.
void set_jump(TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
