// SPDX-License-Identifier: Apache-2.0
// Two runs side by side as one self-contained HTML page.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::page {

/// The page, under the rules of page_html() (page.hpp). Throws MissingPart.
std::string compare_html(const analyzers::compare::Comparison& comparison, std::string_view title);

/// Writes the page beside `out` and renames it into place. Throws log::BadInput, MissingPart.
void write_compare_page(const analyzers::compare::Comparison& comparison, std::string_view title,
                        const std::filesystem::path& out);

}  // namespace halfscope::reports::page
