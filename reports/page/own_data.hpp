// SPDX-License-Identifier: Apache-2.0
// Rows of the charts that are not series: updates, headroom below overflow, formats.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns an object by chart: {fields: names of a row's values, parameters: of the specification,
/// rows: by log, then by key}. The key is "all", or a tensor's index as text.
nlohmann::ordered_json own_charts_json(const analyzers::Study& study);

}  // namespace halfscope::reports::page
