// SPDX-License-Identifier: Apache-2.0
// Conditions on FP8 or FP4 losses that the framework measured.
#include "analyzers/gates/condition.hpp"

namespace halfscope::analyzers::gates {

std::optional<Measured> measure(const Condition& condition,
                                const formats::QuantisedTensor& tensor) {
  if (!is_of_quantised(condition) || !tensor.underflow) return std::nullopt;
  const formats::AtStep& largest = tensor.underflow->largest;
  return ShareRange{largest.low, largest.high};
}

/// Tensors of a recipe that the run did not use are not judged, so no condition applies to them.
bool applies(const Condition& condition, const formats::QuantisedTensor& tensor) {
  return tensor.judged && selects(condition, tensor.role, tensor.name());
}

}  // namespace halfscope::analyzers::gates
