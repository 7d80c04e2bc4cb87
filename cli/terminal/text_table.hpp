// SPDX-License-Identifier: Apache-2.0
// Layout of an answer's tables and sections in a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "reports/answer/section.hpp"

namespace halfscope::cli::terminal {

/// Line length if the terminal's width is unknown.
inline constexpr std::size_t kTextColumns = 100;

/// Returns title, note, the first rows, and how many are not shown. Numbers are right-aligned.
std::string table_text(const reports::answer::Table& table);

/// Returns an empty line, where the lines belong, and the lines to paste.
std::string paste_text(const reports::answer::PasteLines& paste);
/// Returns the title, the sentences as a list, the lines to paste and the tables; an empty string
/// for an empty section.
std::string section_text(const reports::answer::Section& section);
/// Returns the texts of all sections.
std::string sections_text(std::span<const reports::answer::Section> sections);

}  // namespace halfscope::cli::terminal
