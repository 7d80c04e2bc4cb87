// SPDX-License-Identifier: Apache-2.0
// What a notebook shows, as values; text has marks (answer/marks.hpp). Python lays it out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::notebook {

/// {first: sentences, the first is the headline; paste: {label, lines, note} or none;
///  numbers: [{kind, title, value, detail}]; clear; findings: [{severity, title, action}];
///  sections: [{title, sentences, pastes, tables: [{title, note, headings, numbers: which columns
///  hold numbers, rows: texts, marked: which rows, left_out, all_by}]}]}
nlohmann::ordered_json shown(const analyzers::Study& study);
/// Of findings without a recommendation.
nlohmann::ordered_json shown_findings(const analyzers::Findings& found);
/// asked, chosen: as answer::replay_sections() has them.
nlohmann::ordered_json shown(const std::vector<analyzers::replay::PolicyStudy>& studies,
                             std::string_view asked, bool chosen);
nlohmann::ordered_json shown(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::notebook
