// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_section.hpp"

#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

std::string section_text(const reports::answer::Section& section) {
  constexpr std::size_t kColumns = 100;
  if (section.empty()) return "";
  std::string out = section.title.empty() ? "" : section.title + ":\n";
  for (const std::string& sentence : section.sentences) {
    out += reports::answer::wrapped_text("* " + reports::answer::plain(sentence), kColumns, 2);
  }
  for (const reports::answer::Table& table : section.tables) {
    out += (out.empty() ? "" : "\n") + table_text(table);
  }
  return out;
}

}  // namespace halfscope::cli::terminal
