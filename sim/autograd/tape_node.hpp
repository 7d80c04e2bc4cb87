// SPDX-License-Identifier: Apache-2.0
// What a tape keeps of one value, and of LSTMs; for the files that record on tapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/autograd/tape.hpp"

namespace halfscope::sim::autograd {

struct Tape::Node {
  std::string name;  ///< empty: a Watch is not told
  backend::Tensor value;
  bool wanted = false;
  Step step;              ///< empty where nothing before it needs a gradient
  std::size_t reads = 0;  ///< so many nodes after it have no step: this one reads their gradients
  backend::Tensor gradient;  ///< empty until the first use of the value has given one
  double scale = 1;          ///< that the gradient carries
};

/// One time step, for its backward pass.
struct Tape::Lstm {
  std::string name;
  Value x = 0, h_before = 0;
  backend::Tensor c_before, gates;
  std::optional<Value> cell_before;  ///< empty before the first step
  Parameter *input = nullptr, *hidden = nullptr, *input_bias = nullptr, *hidden_bias = nullptr;
};

/// All time steps that were passed backward, last first: what weight gradients are products of.
struct Tape::LstmWeights {
  Lstm of;
  std::vector<backend::Tensor> gates, inputs,
      hidden;                 ///< gradients of gates, values of x and h; (1, N, C)
  double scale = 1;           ///< that the gradients carry
  backend::Tensor all_gates;  ///< (1, T * N, 4H)
};

}  // namespace halfscope::sim::autograd
