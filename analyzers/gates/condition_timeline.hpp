// SPDX-License-Identifier: Apache-2.0
// Conditions on a log's state, which is a word.
#pragma once

#include <optional>
#include <string_view>

#include "analyzers/gates/condition.hpp"

namespace halfscope::analyzers::gates {

std::optional<scale_history::RunState> state_named(std::string_view name);

/// Throws std::invalid_argument where a condition on `state` compares it with what is no state.
void require_state(const Condition& condition);

}  // namespace halfscope::analyzers::gates
