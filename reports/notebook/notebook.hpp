// SPDX-License-Identifier: Apache-2.0
// The content of a notebook's output, for layout in Python. Text has marks (answer/text.hpp).
// Charts for notebooks: rows and parameters to insert in the specifications (assets/charts).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::notebook {

/// Returns {first: sentences, the headline first; paste: {label, lines, note} or null;
///  numbers: [{kind, title, value, detail}]; clear; findings: [{severity, title, action}];
///  sections: [{title, sentences, pastes, tables: [{title, note, headings, numbers: indices of
///  columns with numbers, rows: texts, marked: indices of rows, left_out, all_by}]}]}.
nlohmann::ordered_json shown(const analyzers::Study& study);
/// Returns the same fields for findings without a recommendation.
nlohmann::ordered_json shown_findings(const analyzers::Findings& found);
/// `asked` and `chosen` are the arguments of answer::replay_sections().
nlohmann::ordered_json shown(const std::vector<analyzers::replay::PolicyStudy>& studies,
                             std::string_view asked, bool chosen);
nlohmann::ordered_json shown(const analyzers::compare::Comparison& comparison);

/// Returns a list of {name, chart, log, title, note, parameters, rows}. `chart` is the name of the
/// specification, `name` adds what is drawn ("histogram/weight_grad"), `title` and `note` are the
/// caption if there is one, `rows` are objects, at least one. Charts of all gradients come first.
nlohmann::ordered_json charts_of(const analyzers::Study& study);

/// Returns the charts of one tensor, in the first log that has it; an empty list if none has.
nlohmann::ordered_json charts_of_tensor(const analyzers::Study& study, const std::string& tensor);

}  // namespace halfscope::reports::notebook
