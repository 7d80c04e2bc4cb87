// SPDX-License-Identifier: Apache-2.0
// The settings to paste. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::reports::page {

/// One framework at a time; empty where no scale is recommended.
std::string settings_html(const answer::Answer& answer, const analyzers::Study& study);

}  // namespace halfscope::reports::page
