// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/update_constants.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "halfscope/number/convert.hpp"

namespace halfscope::sim::backend {

UpdateConstants update_constants(const UpdateRule& rule, Dtype dtype, double unscale) {
  const Format format = format_of(dtype);
  const auto rounded = [&](double value) {
    return static_cast<float>(to_double(format, from_double(format, value).bits));
  };
  const auto t = static_cast<double>(rule.t);
  UpdateConstants c;
  c.kind = rule.kind;
  c.unscale = static_cast<float>(unscale);
  c.decay = rounded(rule.weight_decay);
  c.rate = rounded(rule.learning_rate);
  c.momentum = rounded(rule.momentum);
  c.beta1 = rounded(rule.beta1);
  c.beta2 = rounded(rule.beta2);
  c.rest1 = rounded(1 - rule.beta1);
  c.rest2 = rounded(1 - rule.beta2);
  c.adam_rate = rounded(rule.learning_rate / (1 - std::pow(rule.beta1, t)));
  c.root_correction = rounded(std::sqrt(1 - std::pow(rule.beta2, t)));
  c.epsilon = rounded(rule.epsilon);
  return c;
}

void require_update(const UpdateRule& rule, const Tensor& gradient, const Tensor& weight,
                    std::span<const Tensor> state, const Tensor& delta) {
  const std::size_t wanted = state_count(rule.kind);
  if (state.size() != wanted) {
    throw std::invalid_argument("sim: update: " + std::to_string(state.size()) +
                                " tensors of state, expected " + std::to_string(wanted));
  }
  for (const Tensor& tensor : state) {
    if (tensor.size() == weight.size() && tensor.dtype == weight.dtype) continue;
    throw std::invalid_argument("sim: update: state of another size or dtype than the weight");
  }
  if (gradient.size() != weight.size() || (delta && delta.size() != weight.size())) {
    throw std::invalid_argument("sim: update: a gradient or a delta of another size");
  }
}

}  // namespace halfscope::sim::backend
