// SPDX-License-Identifier: Apache-2.0
// Why no loss scale is recommended, or why the recommended one is not sufficient. No string has
// marks.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// Returns `reason` of the JSON: "no_gradients", ..., or missed_text(); empty if a scale suffices.
std::string reason_json_text(const analyzers::recommend::Recommendation& advice);

/// Returns "No loss scale can be recommended"; "... is recommended" if training diverges.
std::string_view no_scale_title(const analyzers::recommend::Recommendation& advice);
/// Returns the reason: "every finite gradient value is zero". Empty if a scale is recommended.
std::string no_scale_text(const analyzers::Study& study);

/// Returns what the recommended scale does not achieve, as the end of a sentence without marks.
/// Names are not made printable. Empty if misses_target() is false.
std::string missed_text(const analyzers::recommend::Recommendation& advice);

/// Returns what static_log2 is: "upper bound" if Recommendation::all_steps_censored(), "allowed" if
/// only the finite gradients allow it and no scale helps the run, else "recommended".
std::string_view advised_word(const analyzers::recommend::Recommendation& advice);

/// For example "infinities hide ..., so 2^15 is only an upper bound."
std::string upper_bound_text(std::string_view scale);

/// Returns why there is no static scale, and what to do. Requires all_steps_censored().
std::string unheld_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::answer
