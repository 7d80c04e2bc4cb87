// SPDX-License-Identifier: Apache-2.0
// The evidence for an answer as sections, in the order of the page, for Markdown and notebooks.
#pragma once

#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns the sections of a study, without what the answer itself contains (answer.hpp).
std::vector<Section> evidence_sections(const analyzers::Study& study);

/// Returns the sections that `analyze` shows, without a recommendation. The first is about tensors.
std::vector<Section> findings_sections(const analyzers::Findings& found);

/// Returns the sections about policies replayed over a log. `asked`: the value of --framework,
/// empty without it. `chosen`: true if the user selected policies by name.
std::vector<Section> replay_sections(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked, bool chosen);

}  // namespace halfscope::reports::answer
