// SPDX-License-Identifier: Apache-2.0
// Sections on which formats fit, and with how much rounding noise.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns each role's narrowest format and its noise, and how much the flushed gradients weigh.
/// Empty if the log was analyzed without formats.
Section formats_section(const analyzers::Findings& found);

/// Returns the formats of each tensor, first tensors that need wide ones. In formats_table.cpp.
Table formats_table(const analyzers::underflow::Analysis& analysis);

/// For example "3 of 12 tensors fit 8 bits; 1 holds NaN or infinity".
std::string formats_digest(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
