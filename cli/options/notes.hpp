// SPDX-License-Identifier: Apache-2.0
// Output to stderr: errors, a progress bar, and notes on the logs, which follow the output on
// stdout.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "analyzers/frames/source.hpp"

namespace halfscope::cli::options {

/// Writes text to stderr. If stderr is closed or full, the text is lost without an error.
void write_error(std::string_view text);

/// Writes the line "halfscope: ..." to stderr with write_error().
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  write_error("halfscope: " + fmt::format(text, std::forward<Values>(values)...) + "\n");
}

/// Writes the first ten lines, then "and N more notes". `way_out` says how to see all of them; if
/// it is empty, it is omitted.
void say_some(const analyzers::frames::Notes& lines, std::string_view way_out = {});

/// Stores notes for print_notes(). Equal texts are stored once.
void note_later(const analyzers::frames::Notes& notes);

/// Flushes stdout, then writes the stored notes to stderr. Called by main() at the end of a
/// command, and before an error message is printed.
void print_notes();

/// A progress bar on stderr with the time left and, for bytes, the rate. It is shown after one
/// second, and only if stderr is a terminal. It can show several passes: it restarts when `all`
/// changes or `done` decreases.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Updates the bar. The numbers are bytes, or other units if `all` is below a million.
  void show(std::uint64_t done, std::uint64_t all);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point start_ = Clock::now(), phase_ = start_, shown_ = start_;
  std::uint64_t done_ = 0, all_ = 0;
  bool terminal_, visible_ = false;
};

}  // namespace halfscope::cli::options
