// SPDX-License-Identifier: Apache-2.0
// What to do beyond one scale, for the terminal.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::cli::terminal {

/// What to keep in FP32, layers' own scales, memory and odd extents: a few lines each, none where
/// there is nothing to say.
std::string cures_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::cli::terminal
