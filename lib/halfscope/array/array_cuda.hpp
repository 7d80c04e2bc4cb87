// SPDX-License-Identifier: Apache-2.0
// The functions of array.hpp on a CUDA device, with the same results, bit for bit, and the same
// flags. Link halfscope::cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "halfscope/array/array.hpp"

namespace halfscope::cuda {

// Pointers are to memory that the current device can access, with `count` elements each; `out` may
// be an input. ArrayOptions::threads is ignored. Each function queues its work on `stream`, waits
// for it and returns the union of the flags of all elements. Each throws std::invalid_argument as
// in array.hpp and for a negative count, and std::runtime_error that names a failed CUDA call.

Flags convert(Format to, const float* in, std::uint16_t* out, std::int64_t count,
              const ArrayOptions& options = {}, cudaStream_t stream = nullptr);
Flags convert(Format to, const float* in, std::uint8_t* out, std::int64_t count,
              const ArrayOptions& options = {}, cudaStream_t stream = nullptr);

Flags convert(Format from, const std::uint16_t* in, float* out, std::int64_t count,
              const ArrayOptions& options = {}, cudaStream_t stream = nullptr);
Flags convert(Format from, const std::uint8_t* in, float* out, std::int64_t count,
              const ArrayOptions& options = {}, cudaStream_t stream = nullptr);

Flags quantise(Format f, float* values, std::int64_t count, const ArrayOptions& options = {},
               cudaStream_t stream = nullptr);

Flags add(Format f, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
          std::int64_t count, const ArrayOptions& options = {}, cudaStream_t stream = nullptr);

Flags multiply(Format f, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
               std::int64_t count, const ArrayOptions& options = {}, cudaStream_t stream = nullptr);

Flags fused_multiply_add(Format f, const std::uint16_t* a, const std::uint16_t* b,
                         const std::uint16_t* c, std::uint16_t* out, std::int64_t count,
                         const ArrayOptions& options = {}, cudaStream_t stream = nullptr);

}  // namespace halfscope::cuda
