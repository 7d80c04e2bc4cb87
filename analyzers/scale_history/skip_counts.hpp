// SPDX-License-Identifier: Apache-2.0
// How many steps were skipped, at the least and at the most, as far as a log tells.
#pragma once

#include <cstdint>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Clean steps before growth: frameworks set as many, or more.
inline constexpr std::uint64_t kLeastWindow = 100;

/// Fewer than these are few in the shortest log: TimelineFacts::many_skipped().
inline constexpr std::uint64_t kMany = 3;

/// Whether these are more than 5 % of the steps.
bool more_than_few(std::uint64_t count, std::uint64_t of);

/// How often the scale was halved, where it alone tells of skipped steps. A line shows a fall as
/// often as a step is skipped, however often between two lines it grew and fell.
void set_halvings(const underflow::LogFindings& log, TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
