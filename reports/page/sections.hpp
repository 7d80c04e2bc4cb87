// SPDX-License-Identifier: Apache-2.0
// The findings, and the parts of the evidence that a page has only where the study has them. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Findings shown before the rest is folded.
inline constexpr std::size_t kFindingsShown = 8;

/// In order of harm, each with a link to its evidence where `sections` (of sections_html()) has it;
/// a sentence where nothing was found.
std::string findings_html(const analyzers::Study& study, const std::string& sections);

/// One line about the loss scales, for the folded section.
std::string scales_digest(const analyzers::recommend::Recommendation& advice);

/// Swamped updates, overflow, formats, and more of the recommendation: folded sections.
std::string sections_html(const analyzers::Study& study);

}  // namespace halfscope::reports::page
