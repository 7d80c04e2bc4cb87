// SPDX-License-Identifier: Apache-2.0
// Whether a run did well, as far as its loss scale, its skipped steps and its scalars tell.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Sets what TimelineFacts says of NaN and infinities, of steps skipped in vain, and the state,
/// from all that it has else.
void set_state(const underflow::LogFindings& log, TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
