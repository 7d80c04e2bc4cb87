// SPDX-License-Identifier: Apache-2.0
// HTML of the evidence sections that depend on what the study contains.
#pragma once

#include <set>
#include <string>

#include "analyzers/study.hpp"
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

}  // namespace halfscope::reports::page
