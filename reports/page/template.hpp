// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// The page with its script and style and with markers where findings go, as cmake/VegaBundle.cmake
/// put it into the library; empty when there was no Vega bundle at build time.
std::string_view page_template();
/// The same for two runs side by side.
std::string_view compare_template();

/// What goes where in a template: <!--halfscope:NAME-->.
using Parts = std::map<std::string, std::string, std::less<>>;

/// The template with its parts in place of the markers. Every marker has its part.
std::string filled(std::string_view page, const Parts& parts);

/// Writes a page beside `out` and renames it into place. Throws log::BadInput.
void write_page(std::string_view html, const std::filesystem::path& out);

}  // namespace halfscope::reports::page
