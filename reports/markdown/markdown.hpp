// SPDX-License-Identifier: Apache-2.0
// The report as Markdown: the answer, its findings and its tables, without charts.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::markdown {

/// Returns GitHub-flavoured Markdown with tables and code. Names from logs are code or escaped.
std::string report_markdown(const analyzers::Study& study, std::string_view title);

}  // namespace halfscope::reports::markdown
