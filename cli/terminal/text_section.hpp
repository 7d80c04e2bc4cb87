// SPDX-License-Identifier: Apache-2.0
// Layout of an answer's sections in a terminal.
#pragma once

#include <span>
#include <string>

#include "reports/answer/section.hpp"

namespace halfscope::cli::terminal {

/// Returns an empty line, where the lines belong, and the lines to paste.
std::string paste_text(const reports::answer::PasteLines& paste);
/// Returns the title, the sentences as a list, the lines to paste and the tables; an empty string
/// for an empty section.
std::string section_text(const reports::answer::Section& section);
/// Returns the texts of all sections.
std::string sections_text(std::span<const reports::answer::Section> sections);

}  // namespace halfscope::cli::terminal
