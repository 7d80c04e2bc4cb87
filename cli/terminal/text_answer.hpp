// SPDX-License-Identifier: Apache-2.0
// How an answer is laid out in a terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::cli::terminal {

/// Lines of text as wide as they are, where stdout is no terminal.
inline constexpr std::size_t kUnwrapped = std::numeric_limits<std::size_t>::max();

/// How wide text is on stdout: the terminal's columns, 100 at the most; else kUnwrapped.
std::size_t columns_of_stdout();

/// What `recommend` prints: the headline, the lines to paste, the findings that harm most, in at
/// most kMostLines lines. framework: whose lines; empty is as the answer has it. more: where the
/// rest is, a sentence.
inline constexpr std::size_t kMostLines = 20;
std::string short_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                       std::string_view framework, std::string_view more, std::size_t columns);

/// The same with all findings, and what the scale rests on.
std::string long_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                      std::string_view framework, std::size_t columns);

}  // namespace halfscope::cli::terminal
