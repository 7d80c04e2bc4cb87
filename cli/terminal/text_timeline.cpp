// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_timeline.hpp"

#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::cli::terminal {

std::string timeline_text(const analyzers::Findings& found) {
  constexpr std::size_t kColumns = 100;
  std::string out;
  for (const reports::answer::TimelineWords& words : reports::answer::timeline_words(found)) {
    out += (out.empty() ? "" : "\n") + words.title + ":\n";
    for (const std::string& line : words.lines) {
      out += reports::answer::wrapped_text("* " + line, kColumns, 2);
    }
  }
  return out;
}

}  // namespace halfscope::cli::terminal
