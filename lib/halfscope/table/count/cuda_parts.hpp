// SPDX-License-Identifier: Apache-2.0
// Tensors on a device, cut into the parts that blocks of threads take. Internal to table/, but for
// DeviceTensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::cuda {

/// A tensor in memory that the current device can reach, at any alignment of its elements: f16,
/// bf16 or f32. At multiples of 16 bytes it is read fastest.
struct DeviceTensor {
  Dtype dtype = Dtype::f32;
  const void* data = nullptr;
  std::int64_t count = 0;
};

inline constexpr unsigned kPartThreads = 256;
inline constexpr std::int64_t kPartElements = 1 << 16;  ///< 32-bit counts surely hold it

/// What one block of kPartThreads threads takes. Parts begin at multiples of kPartElements, so that
/// sums of floating numbers have the same order on every device.
struct Part {
  const void* data;
  unsigned count;
  unsigned tensor;  ///< its place in the list
  Dtype dtype;
};

/// Throws std::invalid_argument naming the tensor where the dtype is none of the three or the count
/// is negative.
void require_device_tensor(const DeviceTensor& tensor, const char* who);

/// Appends the parts of one tensor.
void append_parts(const DeviceTensor& tensor, unsigned index, std::vector<Part>& parts);

}  // namespace halfscope::cuda
