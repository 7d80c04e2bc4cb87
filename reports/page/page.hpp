// SPDX-License-Identifier: Apache-2.0
// One self-contained HTML page: summary, findings in order of harm, evidence, and the same numbers
// as JSON and CSV.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// The program was built without a part that is asked of it. The command line exits with 3.
class MissingPart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether the script that draws charts was there when the program was built.
bool has_charts();
/// Throws MissingPart, with the way out, when it was not.
void require_charts();

/// The page. It works from disk: no request leaves it, and its content security policy allows no
/// script but its own. Names in the findings are shown as text. Throws MissingPart.
std::string page_html(const analyzers::Study& study, std::string_view title);

/// Writes the page beside `out` and renames it into place: an existing report stays whole until the
/// new one is. Throws log::BadInput when it cannot be written, MissingPart.
void write_report(const analyzers::Study& study, std::string_view title,
                  const std::filesystem::path& out);

}  // namespace halfscope::reports::page
