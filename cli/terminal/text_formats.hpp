// SPDX-License-Identifier: Apache-2.0
// Which formats the tensors fit, for people.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::cli::terminal {

/// The tensors by role and narrowest format, then the noise by role and format: a screenful for any
/// number of tensors. Empty where no fits are known.
std::string formats_text(const analyzers::Findings& found);

}  // namespace halfscope::cli::terminal
