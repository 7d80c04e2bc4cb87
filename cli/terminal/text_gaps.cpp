// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_gaps.hpp"

#include <fmt/format.h>

#include <set>

#include "halfscope/log/error.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using reports::answer::LogGaps;
namespace text = reports::answer;

/// Gaps told in a sentence; the others by name.
constexpr std::size_t kShown = 3;
constexpr std::size_t kColumns = 100;

std::string log_text(const LogGaps& gaps, bool several) {
  std::string out =
      fmt::format("\nWhat {} does not show ({}):\n", several ? log::printable(gaps.log) : "the log",
                  log::printable(gaps.kind));
  std::string others;
  for (std::size_t i = 0; i < gaps.unknown.size(); ++i) {
    if (i < kShown) {
      out += text::wrapped_text("* " + gaps.unknown[i].text, kColumns, 2);
    } else {
      others += (others.empty() ? "" : "; ") + std::string(gaps.unknown[i].what);
    }
  }
  return others.empty() ? out : out + text::wrapped_text("* Nor: " + others + ".", kColumns, 2);
}

std::string recording_text(const text::Recording& recording) {
  std::string out =
      text::wrapped_text(fmt::format("To record it next time, {}:", recording.where), kColumns, 2);
  out += "  ";
  for (const char c : recording.lines) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out + "\n";
}

}  // namespace

std::string gaps_text(const analyzers::underflow::Analysis& analysis) {
  const std::vector<LogGaps> all = text::could_not_tell(analysis);
  std::string out;
  std::set<std::string> lines;
  for (const LogGaps& gaps : all) {
    out += log_text(gaps, all.size() > 1);
    lines.insert(recording_text(gaps.recording));
  }
  for (const std::string& recording : lines) out += recording;
  return out;
}

}  // namespace halfscope::cli::terminal
