// SPDX-License-Identifier: Apache-2.0
// The comparison of two runs as one self-contained HTML page.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::page {

/// Returns the page, with the same guarantees as page_html() (page.hpp). Throws MissingPart.
std::string compare_html(const analyzers::compare::Comparison& comparison, std::string_view title);

/// Writes the page to a temporary file and renames it to `out`. Throws log::BadInput, MissingPart.
void write_compare_page(const analyzers::compare::Comparison& comparison, std::string_view title,
                        const std::filesystem::path& out);

}  // namespace halfscope::reports::page
