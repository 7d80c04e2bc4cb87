// SPDX-License-Identifier: Apache-2.0
// Steps of Adam and SGD on the device, as PyTorch's kernels compute an element of binary32: each
// operation an intrinsic. Written for the tests, without code of lib/halfscope/optimizer.
#pragma once

#include <vector>

#include "halfscope/optimizer/settings.hpp"

namespace optimizer_steps {

struct Element {
  float weight, gradient, first, second, largest;
};

enum class Row : int { single, foreach, capturable, foreach_capturable, fused, fused_2025 };

/// Returns the elements after a step; `steps` counts it. SGD: rows single and fused, with momentum
/// and its buffer. powers: set to the device's powf of both betas. Throws std::runtime_error.
std::vector<Element> on_device(Row row, const halfscope::optimizer::Settings& settings, float steps,
                               const std::vector<Element>& elements, float (&powers)[2]);

}  // namespace optimizer_steps
