// SPDX-License-Identifier: Apache-2.0
// Sections of an answer in a terminal.
#pragma once

#include <span>
#include <string>

#include "reports/answer/section.hpp"

namespace halfscope::cli::terminal {

/// Lines to paste below where they belong, after an empty line.
std::string paste_text(const reports::answer::PasteLines& paste);
/// Title, the sentences as a list, lines to paste, tables; empty where the section is.
std::string section_text(const reports::answer::Section& section);
/// One below the other.
std::string sections_text(std::span<const reports::answer::Section> sections);

}  // namespace halfscope::cli::terminal
