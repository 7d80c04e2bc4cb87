// SPDX-License-Identifier: Apache-2.0
// A section of an answer in a terminal.
#pragma once

#include <string>

#include "reports/answer/section.hpp"

namespace halfscope::cli::terminal {

/// Title, a line for each sentence, tables; empty where the section is.
std::string section_text(const reports::answer::Section& section);

}  // namespace halfscope::cli::terminal
