// SPDX-License-Identifier: Apache-2.0
// What to keep in FP32 and which extents miss the fast kernels, in words. Plain text.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/recommend/advice.hpp"

namespace halfscope::reports::answer {

/// "tensor", "softmax", ... as JSON has them.
std::string_view name_of(analyzers::recommend::KeepInFp32::Kind kind);

/// "its inputs reach 300, whose square is beyond binary16's largest, 65504"
std::string why_text(const analyzers::recommend::KeepInFp32& keep,
                     const analyzers::recommend::Recommendation& advice);

/// "10 outputs and 3 inputs"
std::string odd_extents_text(const analyzers::recommend::Footprint::Odd& odd);
/// "10 outputs and 3 inputs: no multiple of 8"
std::string why_text(const analyzers::recommend::Footprint::Odd& odd);

}  // namespace halfscope::reports::answer
