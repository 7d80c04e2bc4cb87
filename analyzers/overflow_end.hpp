// SPDX-License-Identifier: Apache-2.0
// Runs that never recover.
#pragma once

#include "analyzers/overflow.hpp"

namespace halfscope::analyzers {

/// Of the events that no loss scale cures the first one that lasts to its log's last recorded step;
/// null where there is none, or where it is that step alone.
const OverflowEvent* lasting(const Analysis& analysis, const OverflowFindings& overflow);

}  // namespace halfscope::analyzers
