// SPDX-License-Identifier: Apache-2.0
// Where a run rounds its values. One row a mode; cudnn's roundings are the model: a half tensor at
// every boundary of an operation, binary32 inside one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "halfscope/table/count/count.hpp"

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
enum class Accumulation : std::uint8_t {
  fp32,  ///< binary32, one rounding at the end
  fp16   ///< in sequence, every fused multiply-add rounded to the tensors' type
};

}  // namespace halfscope::sim::backend
