// SPDX-License-Identifier: Apache-2.0
// The activations of a log beside each other: which one a module reads.
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/modules.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

class LayerInputs {
 public:
  /// Refers to both.
  LayerInputs(const LogFindings& log, const Modules& modules);

  /// The activation before a module's own, which is its input where modules follow each other; the
  /// log does not tell the graph. Null for the first, and where the module has no activation.
  const TensorFindings* of(const std::string& module) const;
  /// The last activation, which feeds the loss. Null where there is none.
  const TensorFindings* last() const { return all_.empty() ? nullptr : all_.back(); }

 private:
  const Modules& modules_;
  std::vector<const TensorFindings*> all_;  ///< in the order of computation
};

}  // namespace halfscope::analyzers::underflow
