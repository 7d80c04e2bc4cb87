// SPDX-License-Identifier: Apache-2.0
// Tensors on a device, divided into parts for blocks of threads. Only DeviceTensor is public.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::cuda {

/// A tensor in memory that the current device can access, at any alignment of its elements: f16,
/// bf16 or f32. Reads are fastest if `data` is a multiple of 16 bytes.
struct DeviceTensor {
  Dtype dtype = Dtype::f32;
  const void* data = nullptr;
  std::int64_t count = 0;
};

inline constexpr unsigned kPartThreads = 256;
inline constexpr std::int64_t kPartElements = 1 << 16;  ///< small enough for 32-bit counts

/// The elements that a block of kPartThreads threads counts. Parts begin at multiples of
/// kPartElements, so that floating-point sums have the same order on every device.
struct Part {
  const void* data;
  unsigned count;
  unsigned tensor;  ///< index in the list of tensors
  Dtype dtype;
};

/// Throws std::invalid_argument that names the tensor if its dtype is not f16, bf16 or f32 or the
/// count is negative.
void require_device_tensor(const DeviceTensor& tensor, const char* who);

/// Appends the parts of one tensor.
void append_parts(const DeviceTensor& tensor, unsigned index, std::vector<Part>& parts);

}  // namespace halfscope::cuda
