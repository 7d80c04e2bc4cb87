// SPDX-License-Identifier: Apache-2.0
// The format in which a run keeps its weights: what updates are added in, and may be lost in.
#pragma once

#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// A tensor's name without its role: "fc.weight" of "weight/fc.weight".
std::string path_in(const std::string& name);

/// The narrower of what a tensor is stored and was computed in, as far as the log or the values
/// tell.
std::optional<Dtype> narrowest_dtype(const TensorFindings& tensor);

/// What a weight is kept in: narrowest_dtype() of its master where the log has one, else its own.
std::optional<Dtype> kept_in(const LogFindings& log, const TensorFindings& weight);

/// kept_in() where that is a format of 16 bits: updates are rounded to it.
std::optional<Dtype> kept_in_16_bits(const LogFindings& log, const TensorFindings& weight);

}  // namespace halfscope::analyzers::underflow
