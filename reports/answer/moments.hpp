// SPDX-License-Identifier: Apache-2.0
// Adam's moments stored in few bits: a section of `halfscope weights --moments`.
#pragma once

#include "analyzers/weights/moments.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns which moments may be stored in which format, the lines that do so, and a table of all
/// ways of storing.
Section moments_section(const analyzers::weights::MomentReplay& found);

}  // namespace halfscope::reports::answer
