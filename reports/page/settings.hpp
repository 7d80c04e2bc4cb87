// SPDX-License-Identifier: Apache-2.0
// HTML of the settings to paste.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::reports::page {

/// Returns the settings with a choice of framework; an empty string if no scale is recommended.
std::string settings_html(const answer::Answer& answer, const analyzers::Study& study);

}  // namespace halfscope::reports::page
