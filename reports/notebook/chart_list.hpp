// SPDX-License-Identifier: Apache-2.0
// Charts for notebooks: rows and parameters to insert in the specifications (assets/charts).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::notebook {

/// Returns a list of {name, chart, log, title, note, parameters, rows}. `chart` is the name of the
/// specification, `name` adds what is drawn ("histogram/weight_grad"), `title` and `note` are the
/// caption if there is one, `rows` are objects, at least one. Charts of all gradients come first.
nlohmann::ordered_json charts_of(const analyzers::Study& study);

/// Returns the charts of one tensor, in the first log that has it; an empty list if none has.
nlohmann::ordered_json charts_of_tensor(const analyzers::Study& study, const std::string& tensor);

}  // namespace halfscope::reports::notebook
