// SPDX-License-Identifier: Apache-2.0
// The format in which a run keeps its weights. Updates are added, and may be lost, in this format.
#pragma once

#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Returns a tensor's name without its role: "fc.weight" for "weight/fc.weight".
std::string path_in(const std::string& name);

/// Returns the narrower of the types that a tensor is stored in and was computed in, as far as the
/// log or the values show; empty if unknown.
std::optional<Dtype> narrowest_dtype(const TensorFindings& tensor);

/// Returns narrowest_dtype() of the weight's master copy if the log has one, else of the weight.
std::optional<Dtype> kept_in(const LogFindings& log, const TensorFindings& weight);

/// Returns kept_in() if it is a 16-bit format, which updates are then rounded to; else empty.
std::optional<Dtype> kept_in_16_bits(const LogFindings& log, const TensorFindings& weight);

}  // namespace halfscope::analyzers::underflow
