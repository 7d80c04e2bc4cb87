// SPDX-License-Identifier: Apache-2.0
// Activations that overflow without any loss scale, and the pair of layers between which a power of
// two can be moved: a layer's weights and bias times 2^-k, the next layer's weights times 2^k. What
// the network computes stays the same where all between commutes with a positive factor, as ReLU,
// pooling and dropout do.
#pragma once

#include <cstdint>
#include <optional>
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
  Interval flushed, of;     ///< of the layer's weights: that 2^-k makes zero in the format
  std::vector<std::string> between;  ///< modules between the two that may not commute
  bool classes_known = false;        ///< the log names the class of every module between
};

/// Of each log, one a layer, in the order of computation; only where the next layer's weights hold
/// the shift.
std::vector<LayerShift> layer_shifts(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::overflow
