// SPDX-License-Identifier: Apache-2.0
// Values of a tensor in the bits that a file has them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "halfscope/log/tensor_file.hpp"
#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// A tensor as a file holds it; owns its bytes.
struct TensorBits {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<std::byte> bytes;

  /// The view is valid as long as this object.
  log::NamedTensor named(const std::string& name) const;
};

TensorBits bits_of(Backend& backend, const Tensor& tensor);

/// Sets a tensor to what a file holds. The dtypes and the number of elements are the same.
void set_bits(Backend& backend, const TensorView& from, Tensor& to);

/// A convolution's weight (K, R, S, C) as PyTorch lays it out, (K, C, R, S): run logs have weights
/// so, whoever recorded them. Other ranks stay.
Shape torch_shape(const Shape& shape);
TensorBits torch_layout(TensorBits tensor);

}  // namespace halfscope::sim::backend
