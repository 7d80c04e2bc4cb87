// SPDX-License-Identifier: Apache-2.0
// What `analyze` says of tensors of which a log has the largest magnitudes and no counts.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::cli::terminal {

/// A screenful; more of it is in the JSON. Empty where there are none.
std::string peaks_text(const analyzers::Findings& found);

}  // namespace halfscope::cli::terminal
