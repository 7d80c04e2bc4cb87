// SPDX-License-Identifier: Apache-2.0
// Conversion of tensors to and from the bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "halfscope/log/tensor_file.hpp"
#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// A tensor in a file's representation; owns its bytes.
struct TensorBits {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<std::byte> bytes;

  /// Returns a view that is valid during this object's lifetime.
  log::NamedTensor named(const std::string& name) const;
};

TensorBits bits_of(Backend& backend, const Tensor& tensor);

/// Copies values from a file into a tensor. The dtypes and numbers of elements must be equal.
void set_bits(Backend& backend, const TensorView& from, Tensor& to);

/// Converts a convolution's weight (K, R, S, C) to PyTorch's layout (K, C, R, S), which run logs
/// use for every recorder. Tensors without four dimensions are returned unchanged.
Shape torch_shape(const Shape& shape);
TensorBits torch_layout(TensorBits tensor);

}  // namespace halfscope::sim::backend
