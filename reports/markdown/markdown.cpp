// SPDX-License-Identifier: Apache-2.0
#include "reports/markdown/markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::markdown {
namespace {

using analyzers::Study;
using answer::Answer;
using answer::Cell;
using answer::Finding;
using answer::Row;
using answer::Table;

constexpr std::size_t kRows = 20;  // shown of a table; the JSON has all

/// Returns a code span whose delimiter is longer than any run of backticks in it (CommonMark
/// 0.31.2, 6.1).
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

/// Returns true if GitHub would make a word a link or a mention, which no backslash prevents.
bool is_linked(std::string_view word) {
  constexpr std::string_view kSigns[] = {"@", "://", "www."};
  return std::ranges::any_of(kSigns, [&](auto sign) { return word.find(sign) != word.npos; });
}

/// Returns text with Markdown's markup escaped; words that GitHub would link become code.
std::string escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]<>|#~&", kBlank = " \n";
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kBlank), text.size());
    const std::string_view word = text.substr(0, end);
    if (is_linked(word)) {
      out += code_span(word);
    } else {
      for (const char c : word) {
        if (kMarkup.find(c) != kMarkup.npos) out += '\\';
        out += c;
      }
    }
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string sentence(std::string_view marked) {
  std::string out;
  for (const answer::Piece& piece : answer::pieces(marked)) {
    out += piece.code ? code_span(piece.text) : escaped(piece.text);
  }
  return out;
}

/// Returns a table row. A bar in a cell is escaped, also in code: it would end the cell (GitHub
/// Flavored Markdown 0.29, 4.10).
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
  std::string out = fmt::format("### {}\n\n", sentence(table.title));
  if (!table.note.empty()) out += sentence(table.note) + "\n\n";
  std::vector<std::string> headings, rule;
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    headings.push_back(escaped(table.headings[i]));
    rule.emplace_back(table.is_number(i) ? "---:" : "---");
  }
  out += row_text(headings) + row_text(rule);
  const std::size_t shown = table.whole ? table.rows.size() : std::min(kRows, table.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = table.rows[i];
    std::vector<std::string> cells;
    for (const Cell& cell : row.cells) {
      const std::string text = sentence(cell.text);
      cells.push_back(row.marked && !text.empty() ? "**" + text + "**" : text);
    }
    out += row_text(cells);
  }
  const std::size_t left_out = table.rows.size() - shown + table.left_out;
  if (left_out == 0) return out + "\n";
  return out + "\n" +
         sentence(answer::left_out_text(left_out,
                                        answer::code(fmt::format("halfscope {}", table.all_by)))) +
         "\n\n";
}

std::string paste_text(const Answer& answer, const Study& study) {
  const answer::Snippet* const snippet = snippet_of(answer.snippets, study);
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

std::string paste_text(const answer::PasteLines& paste) {
  return fmt::format("{}:\n\n```\n{}\n```\n\n{}{}", sentence(paste.label), paste.lines,
                     sentence(paste.note), paste.note.empty() ? "" : "\n\n");
}

std::string section_text(const answer::Section& section) {
  std::string out;
  if (!section.title.empty()) out += fmt::format("## {}\n\n", sentence(section.title));
  for (const std::string& line : section.sentences) out += "* " + sentence(line) + "\n";
  if (!section.sentences.empty()) out += "\n";
  for (const answer::PasteLines& paste : section.pastes) out += paste_text(paste);
  for (const Table& table : section.tables) out += table_text(table);
  return out;
}

}  // namespace

std::string report_markdown(const Study& study, std::string_view title) {
  const Answer answer = answer::answer_of(study);
  std::string out = fmt::format("# {}\n\n", escaped(log::printable(title)));
  out += "**" + sentence(answer.headline()) + "**";
  if (answer.lead && !answer.lead->action.empty()) out += " " + sentence(answer.lead->action);
  if (answer.lead && !answer.scale.empty()) out += "\n\n" + sentence(answer.scale);
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
         list_text(answer::kDetailsTitle, details);
  for (const Table& table : answer.tables) out += table_text(table);
  for (const answer::Section& section : answer::evidence_sections(study)) {
    out += section_text(section);
  }
  return out;
}

std::string sections_markdown(std::span<const answer::Section> sections, std::string_view title) {
  std::string out = fmt::format("# {}\n\n", escaped(log::printable(title)));
  for (const answer::Section& section : sections) out += section_text(section);
  return out;
}

}  // namespace halfscope::reports::markdown
