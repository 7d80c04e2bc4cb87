// SPDX-License-Identifier: Apache-2.0
// Conditions on a log's state, whose limit is a name instead of a number.
#pragma once

#include <optional>
#include <string_view>

#include "analyzers/gates/condition.hpp"

namespace halfscope::analyzers::gates {

std::optional<scale_history::RunState> state_named(std::string_view name);

/// Throws std::invalid_argument unless a condition on `state` compares it by == or != with a state.
void require_state(const Condition& condition);

}  // namespace halfscope::analyzers::gates
