// SPDX-License-Identifier: Apache-2.0
// Where a run rounds its values. One row a mode; cudnn's roundings are the model: a half tensor at
// every boundary of an operation, binary32 inside one.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/table/count/count.hpp"
#include "halfscope/tensor_core/mma.hpp"

namespace halfscope::sim::backend {

/// Batch-norm statistics and parameters, softmax, loss and the LSTM's cell state are binary32 in
/// every mode, as cuDNN has them.
struct Precision {
  std::string_view name;
  Dtype tensors;  ///< activations, gradients, and the weights that operations read
  bool master;    ///< binary32 master weights and optimizer state; else both are of `tensors`

  /// Of the optimizer's weights, state and arithmetic.
  Dtype update() const { return master ? Dtype::f32 : tensors; }
};

inline constexpr std::array kPrecisions = {
    Precision{"fp32", Dtype::f32, false}, Precision{"fp16", Dtype::f16, false},
    Precision{"mixed", Dtype::f16, true}, Precision{"bf16", Dtype::bf16, false},
    Precision{"mixed-bf16", Dtype::bf16, true}};

/// How the sum of a product of matrices is kept.
struct Accumulation {
  static const Accumulation fp32;  ///< binary32, one rounding at the end
  /// In sequence, every fused multiply-add rounded to the tensors' type.
  static const Accumulation fp16;

  bool narrow = false;  ///< as fp16 says
  /// Not null: one chain of its Tensor Core's steps, sums of binary32.
  const tensor_core::Architecture* architecture = nullptr;

  /// The architecture's unit for tensors of a type, if it has one.
  std::optional<tensor_core::Unit> unit_for(Dtype tensors) const;

  friend bool operator==(const Accumulation&, const Accumulation&) = default;
};
inline constexpr Accumulation Accumulation::fp32 = {};
inline constexpr Accumulation Accumulation::fp16 = {.narrow = true};

/// "fp32", "fp16", "tensor-core:hopper".
std::string text_of(const Accumulation& accumulation);
/// All there are; fp32 is the first.
std::vector<Accumulation> accumulations();
std::optional<Accumulation> find_accumulation(std::string_view text);

}  // namespace halfscope::sim::backend
