// SPDX-License-Identifier: Apache-2.0
// Which loss scale to use, in a sentence or two, with marks (marks.hpp).
#pragma once

#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// The scale to use, or that none is needed, or why none can be recommended. fine: to say that
/// PyTorch's defaults are.
std::string scale_sentence(const analyzers::Study& study, bool fine);

/// Whether even the largest safe scale loses most of what the gradients hold.
bool serves_nothing(const analyzers::recommend::Recommendation& advice);

/// Whether PyTorch's defaults serve the run: replayed, they lose a negligible part of the
/// gradients' squares, or no more values than any other settings; they skip few steps; and nothing
/// breaks.
bool default_fine(const analyzers::Study& study);

inline constexpr std::string_view kDefaultFine =
    "PyTorch's default GradScaler() is fine for this run: change nothing.";

/// The scale for parameters in FP16, where that is less than the one recommended; else empty.
std::string half_parameters_text(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::answer
