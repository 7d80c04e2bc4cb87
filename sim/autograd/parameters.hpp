// SPDX-License-Identifier: Apache-2.0
// The weights of a network, with their gradients and optimizer state. A parameter is created when a
// network first names it. Its initial values depend only on the seed and on its name.
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
  backend::Tensor weight;    ///< the weights that layers compute with
  backend::Tensor master;    ///< binary32 master weights; empty if the precision mode has none
  backend::Tensor gradient;  ///< in the weight's dtype; multiplied by gradient_scale
  double gradient_scale = 1;
  std::vector<backend::Tensor> state;  ///< optimizer state, as Backend::update() requires it
  bool trained = true;                 ///< false for a running statistic, which has no gradient

  /// Returns the tensor that the optimizer updates.
  backend::Tensor& updated() { return master ? master : weight; }
};

/// Initial values of a parameter.
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

  /// Returns the parameter `name` and creates it if it does not exist. If `wide` is true, it is
  /// binary32 in every precision mode.
  Parameter& at(const std::string& name, const backend::Shape& shape, Initial initial,
                std::int64_t fan_in, bool wide = false);
  /// Returns the running statistic `name` (binary32, no gradient); creates it if it does not exist.
  Parameter& statistic(const std::string& name, const backend::Shape& shape, Initial initial);

  /// All parameters, in the order in which they were created.
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
