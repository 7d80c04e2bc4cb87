// SPDX-License-Identifier: Apache-2.0
// The share of all gradient values that a loss scale flushes to zero.
#pragma once

#include <vector>

#include "analyzers/underflow/share.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// Returns the share over all counted tensors at loss scale 2^k.
underflow::Share flushed_at(const underflow::Analysis& analysis, int k);
/// Returns the shares at the scales from 2^first to 2^last.
std::vector<underflow::Share> flushed_at(const underflow::Analysis& analysis, int first, int last);

}  // namespace halfscope::analyzers::recommend
