// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// Returns the page's template with script, style and markers for the findings.
/// cmake/VegaBundle.cmake embeds it; it is empty if there was no Vega bundle at build time.
std::string_view page_template();
/// Returns the template of a page that compares two runs.
std::string_view compare_template();

/// Contents by name of the marker <!--halfscope:NAME--> that they replace.
using Parts = std::map<std::string, std::string, std::less<>>;

/// Returns the template with every marker replaced. `parts` must contain every marker's name.
std::string filled(std::string_view page, const Parts& parts);

/// Writes a page to a temporary file and renames it to `out`. Throws log::BadInput.
void write_page(std::string_view html, const std::filesystem::path& out);

}  // namespace halfscope::reports::page
