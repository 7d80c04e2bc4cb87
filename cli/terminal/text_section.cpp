// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_section.hpp"

#include <fmt/format.h>

#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

using reports::answer::plain;
using reports::answer::Section;

std::string paste_text(const reports::answer::PasteLines& paste) {
  std::string out = fmt::format("\n{}:\n{}\n", plain(paste.label),
                                reports::answer::indented_text(paste.lines, 2));
  if (paste.note.empty()) return out;
  return out + reports::answer::wrapped_text(plain(paste.note), kTextColumns, 0);
}

std::string section_text(const Section& section) {
  std::string out = section.title.empty() ? "" : plain(section.title) + ":\n";
  for (const std::string& sentence : section.sentences) {
    out += reports::answer::wrapped_text("* " + plain(sentence), kTextColumns, 2);
  }
  for (const reports::answer::PasteLines& paste : section.pastes) out += paste_text(paste);
  for (const reports::answer::Table& table : section.tables) {
    out += (out.empty() ? "" : "\n") + table_text(table);
  }
  return section.empty() ? "" : out;
}

std::string sections_text(std::span<const Section> sections) {
  std::string out;
  for (const Section& section : sections) out += (out.empty() ? "" : "\n") + section_text(section);
  return out;
}

}  // namespace halfscope::cli::terminal
