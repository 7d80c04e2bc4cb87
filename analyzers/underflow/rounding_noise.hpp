// SPDX-License-Identifier: Apache-2.0
// Gradients whose exact value is 0: what a log holds of them are the rounding errors of the sums
// that make them. The bias in front of batch normalization is one, and the keys' part of the bias
// of an attention's projection. No loss scale need keep them. docs/numerics/statistics.md.
#pragma once

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Sets TensorFindings::rounding_noise of the gradients of biases, by the activation gradients that
/// they are the sums of. Called before anything else looks at the tensors.
void mark_rounding_noise(Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
