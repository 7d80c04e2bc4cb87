// SPDX-License-Identifier: Apache-2.0
// The settings to paste. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// One framework at a time; empty where no scale is recommended.
std::string settings_html(const analyzers::Study& study);

}  // namespace halfscope::reports::page
