// SPDX-License-Identifier: Apache-2.0
// What Adam's moments lose if they are stored in few bits: a section of `halfscope weights`.
#pragma once

#include "analyzers/weights/moments.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns which moments may be stored in which format, the lines that do so, and a table of all
/// ways of storing.
Section moments_section(const analyzers::weights::MomentReplay& found);

}  // namespace halfscope::reports::answer
