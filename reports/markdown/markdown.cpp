// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::markdown {
namespace {

using analyzers::Study;
using answer::Answer;
using answer::Cell;
using answer::Finding;
using answer::Row;
using answer::Table;

constexpr std::size_t kRows = 20;  // of a table; the JSON has all

/// Text that Markdown would read as markup, quoted.
std::string escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]<>|#~&";
  std::string out;
  for (const char c : text) {
    if (kMarkup.find(c) != kMarkup.npos) out += '\\';
    out += c;
  }
  return out;
}

/// Code between more backticks than it holds in a row, as CommonMark 0.31.2, 6.1, has it.
std::string code_span(std::string_view code) {
  std::size_t longest = 0, run = 0;
  for (const char c : code) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string_view blank = longest == 0 ? "" : " ";
  return fmt::format("{0}{1}{2}{1}{0}", fence, blank, code);
}

std::string sentence(std::string_view marked) {
  std::string out;
  for (const answer::Piece& piece : answer::pieces(marked)) {
    out += piece.code ? code_span(piece.text) : escaped(piece.text);
  }
  return out;
}

/// A bar would end a cell, in code too (GitHub Flavored Markdown 0.29, 4.10).
std::string row_text(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) {
    out += ' ';
    for (std::size_t i = 0; i < cell.size(); ++i) {
      const bool quoted = i > 0 && cell[i - 1] == '\\';
      if (cell[i] == '|' && !quoted) out += '\\';
      out += cell[i];
    }
    out += " |";
  }
  return out + "\n";
}

std::string table_text(const Table& table) {
  std::string out = fmt::format("### {}\n\n", escaped(table.title));
  if (!table.note.empty()) out += sentence(table.note) + "\n\n";
  std::vector<std::string> headings, rule;
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    headings.push_back(escaped(table.headings[i]));
    rule.emplace_back(table.rows.front().cells.at(i).key ? "---:" : "---");
  }
  out += row_text(headings) + row_text(rule);
  for (std::size_t i = 0; i < std::min(kRows, table.rows.size()); ++i) {
    const Row& row = table.rows[i];
    std::vector<std::string> cells;
    for (const Cell& cell : row.cells) {
      const std::string text = sentence(cell.text);
      cells.push_back(row.marked && !text.empty() ? "**" + text + "**" : text);
    }
    out += row_text(cells);
  }
  return table.rows.size() <= kRows
             ? out + "\n"
             : out + fmt::format("\nand {}, in the JSON\n\n",
                                 answer::plural(table.rows.size() - kRows, "more row"));
}

std::string paste_text(const Answer& answer, const Study& study) {
  const answer::Snippet* const snippet = first_snippet(answer, study);
  if (snippet == nullptr) return "";
  const answer::Lines& lines = first_lines_of(*snippet, answer);
  return fmt::format("{}:\n\n```\n{}\n```\n\n{}{}", escaped(snippet->label), lines.lines,
                     escaped(lines.note), lines.note.empty() ? "" : "\n\n");
}

std::string list_text(std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string out = fmt::format("## {}\n\n", title);
  for (const std::string& item : items) out += "* " + item + "\n";
  return out + "\n";
}

std::vector<std::string> findings_of(const Answer& answer) {
  std::vector<std::string> items;
  if (!answer.clear.empty()) items.push_back(sentence(answer.clear));
  for (const Finding& finding : answer.findings) {
    items.push_back(fmt::format("**{}** {}", sentence(finding.title), sentence(finding.action)));
  }
  return items;
}

std::string history_text(const Study& study) {
  std::string out;
  for (const answer::Section& section : answer::timeline_sections(study)) {
    std::vector<std::string> lines;
    for (const std::string& line : section.sentences) lines.push_back(sentence(line));
    out += list_text(escaped(section.title), lines);
  }
  return out;
}

}  // namespace

std::string report_markdown(const Study& study, std::string_view title) {
  const Answer answer = answer::answer_of(study);
  std::string out = fmt::format("# {}\n\n", escaped(log::printable(title)));
  out += "**" + sentence(answer.headline()) + "**";
  if (answer.lead) out += " " + sentence(answer.lead->action) + "\n\n" + sentence(answer.scale);
  out += "\n\n";
  out += paste_text(answer, study);
  std::vector<std::string> numbers, details;
  for (const answer::Number& number : answer.numbers) {
    numbers.push_back(fmt::format("{}: **{}** ({})", sentence(number.title), sentence(number.value),
                                  sentence(number.detail)));
  }
  for (const std::string& detail : answer.details) details.push_back(sentence(detail));
  out += list_text("Key numbers", numbers) +
         list_text("Findings, worst first", findings_of(answer)) +
         list_text(answer::kDetailsTitle, details) + history_text(study);
  for (const Table& table : answer.tables) out += table_text(table);
  return out;
}

}  // namespace halfscope::reports::markdown
