// SPDX-License-Identifier: Apache-2.0
// The parts of the evidence that a page has only where the study has them. HTML.
#pragma once

#include <set>
#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::reports::page {

/// Folded sections of the page.
struct Sections {
  std::string html;
  std::set<answer::Evidence> evidence;  ///< that has a section

  bool has(answer::Evidence what) const {
    return what == answer::Evidence::scales || evidence.contains(what);
  }
};
/// Magnitudes without counts, the loss scale's history, weight updates, overflow, policies,
/// formats, and more of the recommendation: those that the study has.
Sections sections_of(const analyzers::Study& study, const answer::Answer& answer);

/// The tables of one section, one below the other.
std::string tables_html(const answer::Answer& answer, answer::Evidence section);

/// One line about the loss scales, for the folded section.
std::string scales_digest(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::page
