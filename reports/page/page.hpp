// SPDX-License-Identifier: Apache-2.0
// The report as one self-contained HTML page: summary, findings by severity, evidence, and the same
// numbers as JSON and CSV. Likewise the comparison of two runs.
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::page {

/// Thrown if the program was built without a part that is needed. The exit code is then 3.
class MissingPart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns true if the program was built with the script that draws charts.
bool has_charts();
/// Throws MissingPart if has_charts() is false. The message says how to get the part.
void require_charts();

/// Returns the page. It works offline and sends no requests; its content security policy allows
/// only its own script. Names from logs are escaped. Throws MissingPart.
std::string page_html(const analyzers::Study& study, std::string_view title);

/// Writes the page to a temporary file and renames it to `out`, so that an existing report is
/// replaced only by a complete one. Throws MissingPart, or log::BadInput for a failed write.
void write_report(const analyzers::Study& study, std::string_view title,
                  const std::filesystem::path& out);

/// Returns the page, with the same guarantees as page_html(). Throws MissingPart.
std::string compare_html(const analyzers::compare::Comparison& comparison, std::string_view title);

/// Writes the page to a temporary file and renames it to `out`. Throws log::BadInput, MissingPart.
void write_compare_page(const analyzers::compare::Comparison& comparison, std::string_view title,
                        const std::filesystem::path& out);

/// Returns a page of sections, without scripts.
std::string sections_page(std::span<const answer::Section> sections, std::string_view title);

}  // namespace halfscope::reports::page
