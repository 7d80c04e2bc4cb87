// SPDX-License-Identifier: Apache-2.0
// The findings, and the parts of the evidence that a page has only where the study has them. HTML.
#pragma once

#include <set>
#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::page {

/// Findings shown before the rest is folded.
inline constexpr std::size_t kFindingsShown = 8;

/// Folded sections of the page.
struct Sections {
  std::string html;
  std::set<answer::Evidence> evidence;  ///< that has a section
};
/// Swamped updates, overflow, formats, and more of the recommendation.
Sections sections_of(const analyzers::Study& study);

/// In order of harm, each with a link to its evidence where `sections` have it; a sentence where
/// nothing was found.
std::string findings_html(const analyzers::Study& study, const Sections& sections);

/// One line about the loss scales, for the folded section.
std::string scales_digest(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::page
