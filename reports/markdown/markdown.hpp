// SPDX-License-Identifier: Apache-2.0
// The report as Markdown: the answer, its findings and its tables, without charts.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::markdown {

/// Returns GitHub-flavoured Markdown with tables and code. Names from logs are code or escaped.
std::string report_markdown(const analyzers::Study& study, std::string_view title);

/// Returns the sections as Markdown, below a title.
std::string sections_markdown(std::span<const answer::Section> sections, std::string_view title);

}  // namespace halfscope::reports::markdown
