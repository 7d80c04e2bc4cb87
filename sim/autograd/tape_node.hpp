// SPDX-License-Identifier: Apache-2.0
// Data that a tape keeps for each value and for each LSTM. Included by the sources of Tape only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/autograd/tape.hpp"

namespace halfscope::sim::autograd {

struct Tape::Node {
  std::string name;  ///< empty: the Watch is not called
  backend::Tensor value;
  bool wanted = false;
  Step step;                 ///< an empty function if no input needs a gradient
  std::size_t reads = 0;     ///< number of following nodes whose gradients this node's step reads
  backend::Tensor gradient;  ///< empty until a use of the value has added its gradient
  double scale = 1;          ///< the scale that `gradient` is multiplied by
};

/// Values of one time step that its backward pass needs.
struct Tape::Lstm {
  std::string name;
  Value x = 0, h_before = 0;
  backend::Tensor c_before, gates;
  std::optional<Value> cell_before;  ///< no value before the first step
  Parameter *input = nullptr, *hidden = nullptr, *input_bias = nullptr, *hidden_bias = nullptr;
};

/// Values of all time steps that the backward pass has passed, last step first. The weight
/// gradients are products of them.
struct Tape::LstmWeights {
  Lstm of;
  std::vector<backend::Tensor> gates, inputs,
      hidden;                 ///< gradients of gates, values of x and h; (1, N, C)
  double scale = 1;           ///< the scale that the gradients are multiplied by
  backend::Tensor all_gates;  ///< (1, T * N, 4H)
};

}  // namespace halfscope::sim::autograd
