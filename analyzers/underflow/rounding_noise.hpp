// SPDX-License-Identifier: Apache-2.0
// Gradients whose exact value is 0: their recorded values are rounding errors of the sums that
// compute them. Examples are the bias before batch normalization, and the keys' part of the bias of
// an attention's projection. No loss scale need preserve them. docs/numerics/statistics.md.
#pragma once

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Sets TensorFindings::rounding_noise for the gradients of biases, from the activation gradients
/// that they sum up. Called before anything else reads the tensors.
void mark_rounding_noise(Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
