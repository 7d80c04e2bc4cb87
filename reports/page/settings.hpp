// SPDX-License-Identifier: Apache-2.0
// The settings to paste. HTML.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::reports {

/// One framework at a time; empty where no scale is recommended.
std::string settings_html(const analyzers::Analysis& analysis,
                          const analyzers::Recommendation& advice);

}  // namespace halfscope::reports
