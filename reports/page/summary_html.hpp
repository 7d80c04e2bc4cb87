// SPDX-License-Identifier: Apache-2.0
// The top of a page: what is lost, which scale to use, what limits it. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// What stays of the values a loss scale acts on, and what to do; names are escaped.
std::string summary_html(const analyzers::Study& study);

}  // namespace halfscope::reports::page
