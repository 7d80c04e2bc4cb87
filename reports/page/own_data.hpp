// SPDX-License-Identifier: Apache-2.0
// The rows of the charts that are no series: updates, room below overflow, formats.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Chart -> {fields: names of a row's values, parameters: of its specification, rows: log -> key ->
/// rows}. The key is "all", or a tensor's index as text.
nlohmann::ordered_json own_charts_json(const analyzers::Study& study);

}  // namespace halfscope::reports::page
