// SPDX-License-Identifier: Apache-2.0
// Finds the activation that a module reads, from the order of the activations in a log.
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

class LayerInputs {
 public:
  /// Keeps references to both arguments.
  LayerInputs(const LogFindings& log, const Modules& modules);

  /// Returns the activation before the module's own, its input if modules follow one another (the
  /// log has no graph). Null for the first one, and if the module has no activation.
  const TensorFindings* of(const std::string& module) const;
  /// Returns the last activation, which is the loss's input; null if there is none.
  const TensorFindings* last() const { return all_.empty() ? nullptr : all_.back(); }

 private:
  const Modules& modules_;
  std::vector<const TensorFindings*> all_;  ///< in the order of computation
};

}  // namespace halfscope::analyzers::underflow
