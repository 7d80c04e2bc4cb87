// SPDX-License-Identifier: Apache-2.0
#include "cli/options/notes.hpp"

#include <algorithm>
#include <cstdio>

#include "reports/answer/text.hpp"

namespace halfscope::cli::options {
namespace {

analyzers::frames::Notes& kept_notes() {
  static analyzers::frames::Notes notes;
  return notes;
}

}  // namespace

// fmt::print() would throw if the stream cannot be written.
void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void say_some(const analyzers::frames::Notes& lines, std::string_view way_out) {
  constexpr std::size_t kMost = 10;
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) say("{}", lines[i].text());
  if (lines.size() <= kMost) return;
  say("and {}{}{}", reports::answer::plural(lines.size() - kMost, "more note"),
      way_out.empty() ? "" : "; ", way_out);
}

void note_later(const analyzers::frames::Notes& notes) { kept_notes().add_all(notes); }

void print_notes() {
  std::fflush(stdout);  // main() reports write errors
  say_some(kept_notes(), "'halfscope analyze LOG --json -' prints them all");
  kept_notes().clear();
}

}  // namespace halfscope::cli::options
