// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_gaps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

namespace text = reports::answer;

/// Number of gaps shown as sentences; the others are listed by name.
constexpr std::size_t kGapsShown = 3;

text::Section section_of(const text::LogGaps& gaps, bool several_logs) {
  text::Section section{title_of(gaps, several_logs)};
  std::vector<std::string> others;
  for (const text::Unknown& unknown : gaps.unknown) {
    if (section.sentences.size() < kGapsShown) {
      section.sentences.push_back(unknown.text);
    } else {
      others.emplace_back(unknown.what);
    }
  }
  if (!others.empty())
    section.sentences.push_back(fmt::format("Nor: {}.", fmt::join(others, "; ")));
  return section;
}

std::string recording_text(const text::Recording& recording) {
  return text::wrapped_text(recording.sentence(), kTextColumns, 2) +
         text::indented_text(recording.lines, 2) + "\n";
}

}  // namespace

std::string gaps_text(const analyzers::underflow::Analysis& analysis) {
  const std::vector<text::LogGaps> all = text::could_not_tell(analysis);
  std::string out;
  std::set<std::string> lines;
  for (const text::LogGaps& gaps : all) {
    out += "\n" + section_text(section_of(gaps, all.size() > 1));
    lines.insert(recording_text(gaps.recording));
  }
  for (const std::string& recording : lines) out += recording;
  return out;
}

}  // namespace halfscope::cli::terminal
