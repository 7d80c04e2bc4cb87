// SPDX-License-Identifier: Apache-2.0
// Words for what to keep in FP32, and for extents that miss the fast kernels. No string has marks.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/recommend/advice.hpp"

namespace halfscope::reports::answer {

/// Returns the name that JSON has: "tensor", "softmax", ...
std::string_view name_of(analyzers::recommend::KeepInFp32::Kind kind);

/// For example "its inputs reach 300, whose square is beyond binary16's largest, 65504".
std::string why_text(const analyzers::recommend::KeepInFp32& keep,
                     const analyzers::recommend::Recommendation& advice);

/// For example "10 outputs and 3 inputs".
std::string odd_extents_text(const analyzers::recommend::Footprint::Odd& odd);
/// For example "10 outputs and 3 inputs: no multiple of 8".
std::string why_text(const analyzers::recommend::Footprint::Odd& odd);

}  // namespace halfscope::reports::answer
