// SPDX-License-Identifier: Apache-2.0
// Why no loss scale is recommended, or why the recommended one does not serve. Plain text.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// `reason` of the JSON: "no_gradients", ..., or missed_text(); empty where a scale serves.
std::string reason_json_text(const analyzers::recommend::Recommendation& advice);

/// "No loss scale can be recommended", where Recommendation::no_scale says why.
std::string_view no_scale_title(const analyzers::recommend::Recommendation& advice);
/// The rest of that sentence: "every finite gradient value is zero".
std::string no_scale_text(const analyzers::Study& study);

/// What the recommended scale does not reach, as the rest of a sentence with names as they are;
/// empty where misses_target() is not.
std::string missed_text(const analyzers::recommend::Recommendation& advice);

/// What static_scale is: "recommended"; "upper bound" where Recommendation::no_step_held();
/// "allowed", by the finite gradients, where no loss scale helps the run.
std::string_view advised_word(const analyzers::recommend::Recommendation& advice);

/// "infinities hide ..., so that 2^15 is only an upper bound."
std::string upper_bound_text(std::string_view scale);

/// Why there is no static scale to use where Recommendation::no_step_held(), and what to do.
std::string unheld_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::answer
