// SPDX-License-Identifier: Apache-2.0
// Templates of pages, and data inside a page, in script elements that browsers do not run and the
// page's scripts read.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
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

/// Returns <script type="application/json" id=ID data-encoding="gzip+base64">...</script>, which
/// assets/loader.js unpacks. The data cannot end the element: base64 has no "<". Bytes that are not
/// valid UTF-8 become U+FFFD. Rows are packed by columns(); assets/data.js restores them.
std::string json_island(std::string_view id, const nlohmann::ordered_json& value);

/// Replaces every list of objects with the same fields by {"@columns": {field: list}}. Equal values
/// become adjacent, so that gzip's result is a third smaller.
nlohmann::ordered_json columns(const nlohmann::ordered_json& value);

/// Returns gzip (RFC 1952) data as base64 (RFC 4648).
std::string gzip_base64(std::string_view bytes);

}  // namespace halfscope::reports::page
