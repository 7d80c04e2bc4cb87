// SPDX-License-Identifier: Apache-2.0
// The table of a whole tensor's values.
#pragma once

#include <cstdint>
#include <functional>

#include "analyzers/frames/source.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace halfscope::analyzers::frames {

/// Told of so many bytes more that are read; by one thread.
using Read = std::function<void(std::uint64_t)>;

/// The table of values that carry `scale`: exact for every question of the selection. moments: are
/// added to, in the same pass; null where nobody asks for them.
BinadeTable count_values(const TensorView& view, const Selection& selection, double scale,
                         const Read& read, MomentSums* moments = nullptr);

}  // namespace halfscope::analyzers::frames
