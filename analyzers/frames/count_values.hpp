// SPDX-License-Identifier: Apache-2.0
// Counts the values of a whole tensor into a table (histogram).
#pragma once

#include <cstdint>
#include <functional>

#include "analyzers/frames/source.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace halfscope::analyzers::frames {

/// Progress callback: receives the number of bytes just read. Always called on the calling thread.
using Read = std::function<void(std::uint64_t)>;

/// Collectors filled in the pass over a tensor's values. A null pointer collects nothing.
struct Beside {
  MomentSums* moments = nullptr;
  MagnitudeSums* magnitudes = nullptr;
};

/// Returns the table of values that are multiplied by `scale`, exact at every boundary that
/// `selection` needs. `beside` receives the same values.
BinadeTable count_values(const TensorView& view, const Selection& selection, double scale,
                         const Read& read, const Beside& beside = {});

/// Adds the moments of another part of a tensor to those of `sum`. Callers do this before they
/// merge the tables, whose counts are the weights. If one of the two has no moments, `sum` has
/// none.
void add_moments(Frame& sum, const Frame& part);

}  // namespace halfscope::analyzers::frames
