// SPDX-License-Identifier: Apache-2.0
// The scalars of a run log, judged as those of other tools' logs are.
#pragma once

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// What became of a run log's loss scale, by its scalars alone: nothing of what drove it. Empty
/// without scalars, of other logs, and where they tell nothing.
std::optional<TimelineFacts> run_log_facts(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::scale_history
