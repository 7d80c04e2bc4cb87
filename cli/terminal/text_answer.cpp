// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_answer.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::Study;
using reports::answer::Answer;
using reports::answer::Finding;
using reports::answer::plain;
using reports::answer::Snippet;
using reports::answer::wrapped_text;

constexpr std::size_t kFindingsShown = 4;

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::string bullet(const std::string& sentence, std::size_t columns) {
  return wrapped_text("* " + plain(sentence), columns, 2);
}

std::string first_text(const Answer& answer, std::size_t columns) {
  std::string out;
  for (const std::string& line : answer.first_lines()) {
    out += wrapped_text(plain(line), columns, 0);
  }
  return out;
}

/// Returns the lines to paste that do not set a loss scale.
std::string other_pastes(const Answer& answer) {
  std::string out;
  for (const reports::answer::PasteLines& paste : answer.pastes) out += paste_text(paste);
  return out;
}

/// Returns one framework's lines, indented, between empty lines; an empty string if there are none.
std::string paste_text(const Answer& answer, const Study& study, std::string_view framework) {
  const Snippet* const snippet = first_snippet(answer, study, framework);
  if (snippet == nullptr) return other_pastes(answer);
  const reports::answer::Lines& lines = first_lines_of(*snippet, answer);
  std::string out = reports::answer::indented_text(lines.lines, 2);
  if (snippet->framework != "pytorch" && !lines.note.empty()) {
    out += fmt::format("\n\n{}: {}", snippet->label, lines.note);
  }
  return fmt::format("\n{}\n{}\n", out, other_pastes(answer));
}

/// Returns as many findings as fit into `room` lines, at most kFindingsShown.
std::string some_findings(const Answer& answer, std::size_t room, std::size_t columns) {
  std::string out;
  std::size_t shown = 0;
  for (const Finding& finding : answer.findings) {
    const std::string text = bullet(text_of(finding), columns);
    if (shown == kFindingsShown || lines_in(out) + lines_in(text) + 1 > room) break;
    out += text;
    ++shown;
  }
  const std::size_t left = answer.findings.size() - shown;
  return left == 0 ? out
                   : out + fmt::format("  and {}\n", reports::answer::plural(left, "more finding"));
}

/// Returns the loss scale's history if the log has no tensors.
std::string history_text(const Study& study, std::size_t room) {
  if (!study.analysis.tensors().empty()) return "";
  const std::string text = sections_text(reports::answer::timeline_sections(study));
  return lines_in(text) <= room ? text : "";
}

}  // namespace

std::size_t columns_of_stdout() {
  constexpr std::size_t kWidest = 100, kNarrowest = 40;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return kUnwrapped;
  }
  return size.ws_col == 0 ? kWidest : std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
}

std::string short_text(const Answer& answer, const Study& study, std::string_view framework,
                       std::string_view more, std::size_t columns) {
  std::string out = first_text(answer, columns) + paste_text(answer, study, framework);
  if (!answer.clear.empty()) out += wrapped_text(answer.clear, columns, 0);
  const std::string end = wrapped_text(more, columns, 0);
  const auto room = [&] {
    return kMostLines - std::min(kMostLines, lines_in(out) + lines_in(end));
  };
  out += history_text(study, room());
  return out + some_findings(answer, room(), columns) + end;
}

std::string long_text(const Answer& answer, const Study& study, std::string_view framework,
                      std::size_t columns) {
  std::string out = first_text(answer, columns) + paste_text(answer, study, framework);
  if (!answer.clear.empty()) out += wrapped_text(answer.clear, columns, 0);
  for (const Finding& finding : answer.findings) out += bullet(text_of(finding), columns);
  if (!answer.details.empty()) out += fmt::format("\n{}:\n", reports::answer::kDetailsTitle);
  for (const std::string& detail : answer.details) out += bullet(detail, columns);
  for (const reports::answer::Table& table : answer.tables) out += "\n" + table_text(table);
  return out;
}

}  // namespace halfscope::cli::terminal
