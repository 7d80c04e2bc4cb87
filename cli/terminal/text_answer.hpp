// SPDX-License-Identifier: Apache-2.0
// Layout of an answer in a terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::cli::terminal {

/// Column count that means no line breaks; used if stdout is not a terminal.
inline constexpr std::size_t kUnwrapped = std::numeric_limits<std::size_t>::max();

/// Returns the terminal's columns, from 40 to 100, or kUnwrapped if stdout is not a terminal.
std::size_t columns_of_stdout();

/// Returns the text of `recommend`: the headline, the lines to paste, and the worst findings, in at
/// most kMostLines lines. `framework` selects the lines to paste; empty means the answer's default.
/// `more` is a last sentence that says where the rest is.
inline constexpr std::size_t kMostLines = 20;
std::string short_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                       std::string_view framework, std::string_view more, std::size_t columns);

/// Returns the text of `recommend --details`: as short_text(), with all findings and the evidence.
std::string long_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                      std::string_view framework, std::size_t columns);

}  // namespace halfscope::cli::terminal
