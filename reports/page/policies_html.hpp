// SPDX-License-Identifier: Apache-2.0
// The section on loss-scaling policies, but for its charts.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// What each log's run did and what to paste, or why it was not replayed.
std::string policies_answer_html(const analyzers::Study& study);
/// All policies of each log, what is not drawn, pitfalls.
std::string policies_html(const analyzers::Study& study);

}  // namespace halfscope::reports::page
