// SPDX-License-Identifier: Apache-2.0
// The statistics of a recommendation, for the terminal.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::cli::terminal {

/// Lost mass, the chance of a skipped step, dynamic scaling's settings, ranks, and a few scales
/// side by side: none where there is nothing to say.
std::string advice_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::cli::terminal
