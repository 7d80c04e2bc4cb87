// SPDX-License-Identifier: Apache-2.0
// Steps lost because the loss scale starts too high.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Sets TimelineFacts::slow_start where most skipped steps are the first ones. first: of the steps
/// that the log tells of; empty where it numbers entries.
void set_slow_start(const underflow::LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first);

}  // namespace halfscope::analyzers::scale_history
