// SPDX-License-Identifier: Apache-2.0
// What an answer rests on, section by section, in the order of the page: Markdown and a notebook
// lay it out.
#pragma once

#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Of a study, without what the answer has already (answer.hpp).
std::vector<Section> evidence_sections(const analyzers::Study& study);

/// Of findings alone, without a recommendation: what `analyze` shows. The first is of the tensors.
std::vector<Section> findings_sections(const analyzers::Findings& found);

/// Of policies replayed over a log. asked: whose settings were searched, as --framework has it;
/// chosen: whether policies were asked for by name.
std::vector<Section> replay_sections(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked, bool chosen);

}  // namespace halfscope::reports::answer
