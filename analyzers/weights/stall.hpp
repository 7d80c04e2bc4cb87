// SPDX-License-Identifier: Apache-2.0
// Distances from weights to the boundaries of their copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analyzers/weights/moved.hpp"

namespace halfscope::analyzers::weights {

/// Returns the boundaries of a format's copies: element m lies between magnitudes m - 1 and m,
/// counted in codes from 0. The first is 0; two last ones are that of overflow, and infinity.
std::vector<double> copy_boundaries(Dtype copies);

/// Values of more than 16 bits at two steps, in views of the same length.
struct StallInputs {
  TensorView first, last;
  double steps = 1;  ///< number of steps between them
  Dtype copies = Dtype::bf16;
  const std::vector<double>* boundaries = nullptr;  ///< copy_boundaries() of `copies`
};

/// Adds the elements [begin, begin + n) whose bit in `moved` is 0: element begin + i has bit i % 8
/// of moved[i / 8].
void count_stalls(const StallInputs& inputs, std::size_t begin, std::size_t n,
                  std::span<const std::uint8_t> moved, Stall& to);

}  // namespace halfscope::analyzers::weights
