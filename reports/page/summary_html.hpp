// SPDX-License-Identifier: Apache-2.0
// HTML of the top of a page: the answer, the key numbers, the findings.
#pragma once

#include <string>

#include "reports/answer/answer.hpp"
#include "reports/page/sections.hpp"

namespace halfscope::reports::page {

/// Number of findings that are visible; the others are collapsed.
inline constexpr std::size_t kFindingsShown = 8;

std::string summary_html(const answer::Answer& answer);

/// Returns the findings, each with a link to its evidence if `sections` has it.
std::string findings_html(const answer::Answer& answer, const Sections& sections);

}  // namespace halfscope::reports::page
