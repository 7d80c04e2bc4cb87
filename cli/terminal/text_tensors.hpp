// SPDX-License-Identifier: Apache-2.0
// What `analyze` says of every tensor: what is broken first, a summary, a histogram, a table.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// A screenful; more of it is in the JSON.
std::string tensors_text(const analyzers::Findings& found);

}  // namespace halfscope::cli::terminal
