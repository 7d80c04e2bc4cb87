// SPDX-License-Identifier: Apache-2.0
// How many steps overflow at a scale, and settings for a dynamic scale. No string has marks.
#pragma once

#include <string>

#include "analyzers/recommend/advice.hpp"

namespace halfscope::reports::answer {

/// For example "at most 3.4 %" or "3.5 % (0.7 % to 9.9 %)".
std::string chance_text(const analyzers::recommend::SkipBound& bound);

/// For example "0 of 86 steps overflow (at most 3.4 %, 95 %, one-sided)".
std::string overflowing_text(const analyzers::recommend::SkipBound& bound);

/// For example "torch starts at 65536 (2^16) with growth_interval 2000".
std::string settings_text(const analyzers::recommend::DynamicAdvice& advice);

/// Returns a sentence on the origin of the settings.
std::string why_settings_text(const analyzers::recommend::DynamicAdvice& advice);

/// For example "Replayed over the recorded steps, it skips 3 of 86 (0.7 % to 9.9 %, 95 %)".
std::string replayed_text(const analyzers::recommend::DynamicAdvice& advice);

}  // namespace halfscope::reports::answer
