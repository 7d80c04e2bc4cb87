// SPDX-License-Identifier: Apache-2.0
// HTML of the section on loss-scaling policies, without its charts.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns each log's own policy and the lines to paste, or why the log was not replayed.
std::string policies_answer_html(const analyzers::Study& study);
/// Returns each log's table of all policies, the policies that are not drawn, and pitfalls.
std::string policies_html(const analyzers::Study& study);

}  // namespace halfscope::reports::page
