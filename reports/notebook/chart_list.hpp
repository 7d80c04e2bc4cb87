// SPDX-License-Identifier: Apache-2.0
// The charts of a page, each with its rows and parameters: who fills its specification
// (assets/charts) draws it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::notebook {

/// A list of {name, chart, log, title, note, parameters, rows}: `chart` is the specification's
/// name, `name` that and what is drawn ("histogram/weight_grad"), `title` and `note` its caption
/// where it has one, `rows` objects. The charts of all gradients first. None is without rows.
nlohmann::ordered_json charts_of(const analyzers::Study& study);

/// The same of one tensor, of the first log that has it; empty where none has.
nlohmann::ordered_json charts_of_tensor(const analyzers::Study& study, const std::string& tensor);

}  // namespace halfscope::reports::notebook
