// SPDX-License-Identifier: Apache-2.0
// HTML of a page's parts: at its top the answer, the key numbers, all gradients by magnitude, the
// settings to paste, the findings and the facts that a log does not contain; below them the
// evidence sections that depend on what the study contains.
#pragma once

#include <set>
#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::reports::page {

/// Collapsible sections of the page.
struct Sections {
  std::string html;
  std::set<answer::Evidence> evidence;  ///< kinds of evidence that have a section

  bool has(answer::Evidence what) const {
    return what == answer::Evidence::scales || evidence.contains(what);
  }
};
/// Returns the sections on magnitudes without counts, the loss scale's history, weight updates,
/// overflow, policies, formats, and details of the recommendation, as far as the study has them.
Sections sections_of(const analyzers::Study& study, const answer::Answer& answer);

/// Returns all tables of one section.
std::string tables_html(const answer::Answer& answer, answer::Evidence section);

/// Returns one line about the loss scales, the summary of the collapsed section.
std::string scales_digest(const analyzers::recommend::Recommendation& advice);

/// Number of findings that are visible; the others are collapsed.
inline constexpr std::size_t kFindingsShown = 8;

std::string summary_html(const answer::Answer& answer);

/// Returns the findings, each with a link to its evidence if `sections` has it.
std::string findings_html(const answer::Answer& answer, const Sections& sections);

/// Returns the block; an empty string if nothing is missing.
std::string gaps_html(const analyzers::underflow::Analysis& analysis);

/// Returns the figure and a caption for each log that has gradients, which is also the chart's text
/// alternative. Returns an empty string if no log has finite nonzero gradients.
std::string gradients_html(const analyzers::underflow::Analysis& analysis,
                           const analyzers::recommend::Recommendation& advice);

/// Returns the settings with a choice of framework; an empty string if no scale is recommended.
std::string settings_html(const answer::Answer& answer, const analyzers::Study& study);

}  // namespace halfscope::reports::page
