// SPDX-License-Identifier: Apache-2.0
// The weights of a network with their gradients and optimizer state. A parameter comes into being
// when a network first names it, with values that depend on the seed and its name alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"
#include "sim/backend/precision.hpp"

namespace halfscope::sim::autograd {

struct Parameter {
  std::string name;          ///< "conv1.weight"
  backend::Tensor weight;    ///< what operations read
  backend::Tensor master;    ///< binary32, where the mode has it; empty else
  backend::Tensor gradient;  ///< of the weight's dtype; carries gradient_scale
  double gradient_scale = 1;
  std::vector<backend::Tensor> state;  ///< of the optimizer
  bool trained = true;                 ///< else a running statistic: no gradient

  /// What the optimizer updates.
  backend::Tensor& updated() { return master ? master : weight; }
};

/// How a parameter begins.
enum class Initial : std::uint8_t {
  zeros,
  ones,
  kaiming_uniform,  ///< U(-b, b), b = sqrt(6 / fan_in) / sqrt(1 + 5): PyTorch's for conv and linear
  uniform_fan_in,   ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's for biases and LSTMs
  normal            ///< N(0, 1): PyTorch's for embeddings
};

class Parameters {
 public:
  Parameters(backend::Backend& backend, const backend::Precision& precision, std::uint64_t seed);

  /// The parameter of that name; made where there is none yet. `wide`: binary32 in every mode.
  Parameter& at(const std::string& name, const backend::Shape& shape, Initial initial,
                std::int64_t fan_in, bool wide = false);
  /// A running statistic: no gradient, binary32.
  Parameter& statistic(const std::string& name, const backend::Shape& shape, Initial initial);

  /// In the order they came into being.
  std::vector<Parameter*> all();
  std::vector<Parameter*> trained();

  const backend::Precision& precision() const { return precision_; }

 private:
  backend::Backend& backend_;
  backend::Precision precision_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Parameter>> list_;
};

}  // namespace halfscope::sim::autograd
