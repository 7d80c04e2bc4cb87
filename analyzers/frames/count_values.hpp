// SPDX-License-Identifier: Apache-2.0
// The table of a whole tensor's values.
#pragma once

#include <cstdint>
#include <functional>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// Told of so many bytes more that are read; by one thread.
using Read = std::function<void(std::uint64_t)>;

/// The table of values that carry `scale`: exact for every question of the selection.
BinadeTable count_values(const TensorView& view, const Selection& selection, double scale,
                         const Read& read);

}  // namespace halfscope::analyzers::frames
