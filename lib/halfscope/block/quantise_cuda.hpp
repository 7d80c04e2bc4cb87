// SPDX-License-Identifier: Apache-2.0
// The quantiser of quantise.hpp on a CUDA device, with the same results, bit for bit. Link
// halfscope::cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "halfscope/block/quantise.hpp"

namespace halfscope::cuda {

/// Device memory for a quantised tensor, in the form of block::Quantised.
struct QuantisedMemory {
  std::uint8_t* codes;    ///< rows * columns
  std::uint32_t* scales;  ///< as many as block::grid_of() says; null if the recipe has none
  /// SecondScale::tensor: one; SecondScale::row: one a row; else null.
  float* second;
};

/// Quantises rows * columns values in the current device's memory. The function queues its work on
/// `stream` and does not wait for it. QuantiseOptions::scaled and threads are ignored. Throws
/// std::invalid_argument as block::quantise() does and for blocks that run down the columns, and
/// std::runtime_error that names a failed CUDA call.
void quantise(const block::Recipe& recipe, const float* values, std::size_t rows,
              std::size_t columns, const QuantisedMemory& out,
              const block::QuantiseOptions& options = {}, cudaStream_t stream = nullptr);

}  // namespace halfscope::cuda
