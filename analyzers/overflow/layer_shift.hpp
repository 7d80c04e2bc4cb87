// SPDX-License-Identifier: Apache-2.0
// Activations that overflow without any loss scale, and pairs of layers between which a power of
// two can be moved: one layer's weights and bias times 2^-k, the next layer's weights times 2^k.
// The network computes the same if every module between them commutes with a positive factor, as
// ReLU, pooling and dropout do. docs/numerics/statistics.md, "A power of two between layers".
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

struct LayerShift {
  std::string log;
  std::string activation;   ///< the largest overflowing tensor between the layers
  double max_abs = 0;       ///< its magnitude; 65520 if infinities hide it
  bool censored = false;    ///< infinities hide it; `log2` is then a lower bound
  std::string layer, next;  ///< modules with weights
  int log2 = 0;             ///< k: the least that gives one binade of headroom
  double next_max_abs = 0;  ///< the next layer's largest weight times 2^k
  /// Counts of the layer's weights and bias over the recorded steps. 2^-k makes `flushed` of `of`
  /// zero in the format, and moves `subnormal` below its normal range, where they may lose bits.
  Interval flushed, subnormal, of;
  /// Modules between the two whose class the log lacks: they may not commute.
  std::vector<std::string> between;
  /// Both are in one torch.nn.Sequential: only the next layer reads this layer's output, and all
  /// modules between commute.
  bool in_sequence = false;
};

/// Returns the shifts of each log, one per layer, in the order of computation. Omits layers whose
/// next layer would overflow by the shift.
std::vector<LayerShift> layer_shifts(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::overflow
