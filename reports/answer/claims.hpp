// SPDX-License-Identifier: Apache-2.0
// Words for FP32 tensors that hold only numbers of a narrower format.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns what the FP32 tensors of the logs hold. Empty if all of them hold FP32 numbers.
Section claims_section(const std::vector<analyzers::weights::Claim>& claims);

/// Returns "12.3 % never moved (1,234 of 10,000)" for a kind of layer.
std::string strip_text(const analyzers::weights::KindMovement& kind);
/// Returns the title of the bars of a log, with its name if there are several.
std::string strips_title(const analyzers::weights::Movement& movement, bool with_log);
/// Returns the summary of the section on weights.
std::string weights_digest(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
