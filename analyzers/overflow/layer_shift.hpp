// SPDX-License-Identifier: Apache-2.0
// Activations that overflow without any loss scale, and the pair of layers between which a power of
// two can be moved: a layer's weights and bias times 2^-k, the next layer's weights times 2^k. What
// the network computes stays the same where all between commutes with a positive factor, as ReLU,
// pooling and dropout do. docs/numerics/statistics.md, "A power of two between layers".
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

struct LayerShift {
  std::string log;
  std::string activation;   ///< the tensor that overflows, the largest between the two layers
  double max_abs = 0;       ///< of it; 65520 where infinities hide how large it was
  bool censored = false;    ///< infinities hide that: `log2` is the least that helps
  std::string layer, next;  ///< modules with weights
  int log2 = 0;             ///< k: the least with one binade of headroom left
  double next_max_abs = 0;  ///< the next layer's largest weight, times 2^k
  /// Of the layer's weights and bias over the recorded steps: those that 2^-k makes zero in the
  /// format, and those below its normal range then, which may lose bits.
  Interval flushed, subnormal, of;
  /// Modules between the two of which the log does not tell the class: they may not commute.
  std::vector<std::string> between;
  /// Both are in one torch.nn.Sequential: the next layer reads what the layer computes, nothing
  /// else does, and all between commutes.
  bool in_sequence = false;
};

/// Of each log, one a layer, in the order of computation; only where the next layer's weights hold
/// the shift.
std::vector<LayerShift> layer_shifts(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::overflow
