// SPDX-License-Identifier: Apache-2.0
// Tensor memory of the CPU backend: floats whose values are all values of the tensor's dtype, so
// binary32 arithmetic can use them directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/number/format.hpp"
#include "sim/backend/tensor.hpp"

namespace halfscope::sim::backend::cpu {

struct CpuStorage final : Storage {
  explicit CpuStorage(std::int64_t count) : values(static_cast<std::size_t>(count)) {}
  std::vector<float> values;
};

/// Returns the values of a tensor of this backend. Throws std::invalid_argument for a tensor of
/// another backend, an empty tensor, or a shape that does not match the memory's size.
inline float* data(const Tensor& tensor) {
  auto* storage = dynamic_cast<CpuStorage*>(tensor.storage.get());
  if (storage == nullptr) {
    throw std::invalid_argument("sim: expected a tensor of the CPU backend, found " +
                                std::string(tensor ? "one of another backend" : "an empty one"));
  }
  if (static_cast<std::int64_t>(storage->values.size()) != tensor.size()) {
    throw std::invalid_argument("sim: expected a tensor of " + std::to_string(tensor.size()) +
                                " values as its shape says, found memory of " +
                                std::to_string(storage->values.size()));
  }
  return storage->values.data();
}

/// Rounds each value to the dtype (to nearest, ties to even), on the calling thread.
inline void round_values(Dtype dtype, float* values, std::int64_t count) {
  if (dtype == Dtype::f32 || count <= 0) return;
  quantise(format_of(dtype), {values, static_cast<std::size_t>(count)}, {.threads = 1});
}

}  // namespace halfscope::sim::backend::cpu
