// SPDX-License-Identifier: Apache-2.0
// Which formats fit, and with how much noise, as sentences and tables.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// The narrowest format and the noise of each role, and what the flushed gradients weigh; empty
/// where formats were not asked for.
Section formats_section(const analyzers::Findings& found);

/// Every format of every tensor, what fits no narrow one first; formats_table.cpp.
Table formats_table(const analyzers::underflow::Analysis& analysis);

/// "3 of 12 tensors fit 8 bits; 1 holds NaN or infinity"
std::string formats_digest(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
