// SPDX-License-Identifier: Apache-2.0
// What stands on stderr: errors, and behind the answer on stdout the notes on the logs.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "analyzers/frames/source.hpp"

namespace halfscope::cli::options {

/// Writes text to stderr. Where stderr is closed or full the text is lost, and nothing else: the
/// output and the exit code stay.
void write_error(std::string_view text);

/// Writes the line "halfscope: ..." to stderr, as write_error does.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  write_error("halfscope: " + fmt::format(text, std::forward<Values>(values)...) + "\n");
}

/// Says the first ten lines, then "and N more notes". way_out says where all of them are; it
/// may be empty.
void say_some(const analyzers::frames::Notes& lines, std::string_view way_out = {});

/// Keeps notes for print_notes(), each text once.
void note_later(const analyzers::frames::Notes& notes);

/// Writes what was printed to stdout, then the notes that were kept to stderr, each once. main()
/// calls it when the command has ended; whoever prints an error calls it before.
void print_notes();

}  // namespace halfscope::cli::options
