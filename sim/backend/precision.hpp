// SPDX-License-Identifier: Apache-2.0
// Precision modes: the points at which a run rounds its values. The model is cuDNN: tensors between
// operations are 16-bit, arithmetic inside an operation is binary32.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/table/count/count.hpp"
#include "halfscope/tensor_core/mma.hpp"

namespace halfscope::sim::backend {

/// One precision mode. As in cuDNN, batch-norm statistics and parameters, softmax, loss and the
/// LSTM's cell state are binary32 in every mode.
struct Precision {
  std::string_view name;
  Dtype tensors;  ///< dtype of activations, gradients, and the weights that layers compute with
  bool master;    ///< binary32 master weights and optimizer state; else they are `tensors`

  /// Returns the dtype of the optimizer's weights, state and arithmetic.
  Dtype update() const { return master ? Dtype::f32 : tensors; }
};

inline constexpr std::array kPrecisions = {
    Precision{"fp32", Dtype::f32, false}, Precision{"fp16", Dtype::f16, false},
    Precision{"mixed", Dtype::f16, true}, Precision{"bf16", Dtype::bf16, false},
    Precision{"mixed-bf16", Dtype::bf16, true}};

/// The precision of the sums in a matrix product.
struct Accumulation {
  static const Accumulation fp32;  ///< binary32, rounded once at the end
  /// Sequential sums, each fused multiply-add rounded to the tensors' dtype.
  static const Accumulation fp16;

  bool narrow = false;  ///< true for `fp16`
  /// If not null, sums are computed in one chain of steps of this architecture's Tensor Core and
  /// kept in binary32.
  const tensor_core::Architecture* architecture = nullptr;

  /// Returns the architecture's unit for tensors of this dtype, or nullopt if it has none.
  std::optional<tensor_core::Unit> unit_for(Dtype tensors) const;

  friend bool operator==(const Accumulation&, const Accumulation&) = default;
};
inline constexpr Accumulation Accumulation::fp32 = {};
inline constexpr Accumulation Accumulation::fp16 = {.narrow = true};

/// "fp32", "fp16", "tensor-core:hopper".
std::string text_of(const Accumulation& accumulation);
/// Returns all kinds of sums; fp32 is the first.
std::vector<Accumulation> accumulations();
std::optional<Accumulation> find_accumulation(std::string_view text);

}  // namespace halfscope::sim::backend
