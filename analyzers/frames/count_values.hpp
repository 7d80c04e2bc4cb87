// SPDX-License-Identifier: Apache-2.0
// The table of a whole tensor's values.
#pragma once

#include <cstdint>
#include <functional>

#include "analyzers/frames/source.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace halfscope::analyzers::frames {

/// Told of so many bytes more that are read; by one thread.
using Read = std::function<void(std::uint64_t)>;

/// What the pass over values adds to; null where nobody asks.
struct Beside {
  MomentSums* moments = nullptr;
  MagnitudeSums* magnitudes = nullptr;
};

/// The table of values that carry `scale`: exact for every question of the selection.
BinadeTable count_values(const TensorView& view, const Selection& selection, double scale,
                         const Read& read, const Beside& beside = {});

/// Adds the moments of another part of a tensor to those of `sum`. Callers do this before they
/// merge the tables, whose counts are the weights. If one of the two has no moments, `sum` has
/// none.
void add_moments(Frame& sum, const Frame& part);

}  // namespace halfscope::analyzers::frames
