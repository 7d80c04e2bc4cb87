// SPDX-License-Identifier: Apache-2.0
// What a chance of skipped steps is about, in the terminal and on the page.
#pragma once

#include <string>

#include "analyzers/recommend/skip_risk.hpp"

namespace halfscope::reports::answer {

/// "an extreme-value fit, for a step like the last one recorded (the largest magnitudes shrink by
/// 0.12 binades in 100 steps)": what the chance is of, which is not the past, since a trend may
/// have led elsewhere.
std::string fitted_text(const analyzers::recommend::SkipRisk& risk);

}  // namespace halfscope::reports::answer
