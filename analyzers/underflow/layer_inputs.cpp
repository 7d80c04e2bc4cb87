// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/layer_inputs.hpp"

namespace halfscope::analyzers::underflow {

LayerInputs::LayerInputs(const LogFindings& log, const Modules& modules) : modules_(modules) {
  for (const TensorFindings& t : log.tensors) {
    if (t.role == log::Role::activation) all_.push_back(&t);
  }
}

const TensorFindings* LayerInputs::of(const std::string& module) const {
  for (std::size_t i = 1; i < all_.size(); ++i) {
    if (modules_.of(*all_[i]) == module) return all_[i - 1];
  }
  return nullptr;
}

}  // namespace halfscope::analyzers::underflow
