// SPDX-License-Identifier: Apache-2.0
// What a loss scale flushes to zero of all gradients together.
#pragma once

#include <vector>

#include "analyzers/underflow/share.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// Of all counted tensors at loss scale 2^k.
underflow::Share flushed_at(const underflow::Analysis& analysis, int k);
/// The same at each of these scales.
std::vector<underflow::Share> flushed_at(const underflow::Analysis& analysis, int first, int last);

}  // namespace halfscope::analyzers::recommend
