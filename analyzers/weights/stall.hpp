// SPDX-License-Identifier: Apache-2.0
// Distances from weights to the boundaries of their copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "analyzers/weights/moved.hpp"

namespace halfscope::analyzers::weights {

/// The values that decide when the copies of a tensor move. Both views have the same length.
struct StallInputs {
  RateSource source = RateSource::values;
  Format copies;     ///< format of the copies
  TensorView first;  ///< values at the first step; the update for RateSource::update
  TensorView last;   ///< values at the last step
  double steps = 1;  ///< number of steps from the first to the last
};

/// Adds the elements [begin, begin + n) whose bit in `moved` is 0: element begin + i has bit i % 8
/// of moved[i / 8].
void count_stalls(const StallInputs& inputs, std::size_t begin, std::size_t n,
                  std::span<const std::uint8_t> moved, Stall& to);

}  // namespace halfscope::analyzers::weights
