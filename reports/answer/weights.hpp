// SPDX-License-Identifier: Apache-2.0
// Words for weights that move and weights that never do.
#pragma once

#include <vector>

#include "analyzers/weights/forecast.hpp"
#include "analyzers/weights/moments.hpp"
#include "analyzers/weights/moved.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns what moved, what never did and why, and the bytes to send if these were counted.
std::vector<Section> weights_sections(const analyzers::weights::Movement& found);

/// Returns the forecast of the sampled steps, and how it compares with the next weights.
std::vector<Section> weights_sections(const analyzers::weights::Forecast& found);
/// Returns which moments of Adam may be stored in few bits, and the lines that do so; moments.cpp.
std::vector<Section> weights_sections(const analyzers::weights::MomentReplay& found);

}  // namespace halfscope::reports::answer
