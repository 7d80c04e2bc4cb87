// SPDX-License-Identifier: Apache-2.0
// The top of a page: the answer, the key numbers, the findings. HTML.
#pragma once

#include <string>

#include "reports/answer/answer.hpp"
#include "reports/page/sections.hpp"

namespace halfscope::reports::page {

/// Findings shown before the rest is folded.
inline constexpr std::size_t kFindingsShown = 8;

std::string summary_html(const answer::Answer& answer);

/// Each with a link to its evidence where `sections` have it.
std::string findings_html(const answer::Answer& answer, const Sections& sections);

}  // namespace halfscope::reports::page
