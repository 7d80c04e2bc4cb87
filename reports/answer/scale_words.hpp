// SPDX-License-Identifier: Apache-2.0
// The loss scale to use, in one or two sentences. Strings may have marks (marks.hpp).
#pragma once

#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// Returns the scale to use, or that none is needed, or why none can be recommended. `fine`: true
/// to say that PyTorch's defaults are sufficient; requires default_fine().
std::string scale_sentence(const analyzers::Study& study, bool fine);

/// Returns true if even the largest safe scale loses most of the gradients' sum of squares.
bool serves_nothing(const analyzers::recommend::Recommendation& advice);

/// Returns true if PyTorch's defaults are sufficient: nothing breaks, and in a replay they skip few
/// steps and lose hardly more gradients than the best settings.
bool default_fine(const analyzers::Study& study);

inline constexpr std::string_view kDefaultFine =
    "PyTorch's default GradScaler() is fine for this run: change nothing.";

/// Returns the scale for parameters in FP16 if it is less than the recommended one; else empty.
std::string half_parameters_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::answer
