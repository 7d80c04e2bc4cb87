// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

using reports::answer::plain;
using reports::answer::Row;
using reports::answer::Section;
using reports::answer::Table;

namespace {

constexpr std::size_t kRowsShown = 20;  // the JSON has all rows
constexpr std::size_t kWidestCell = 48, kNarrowestHeading = 9;
constexpr std::string_view kBetween = "  ";

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; }

/// Returns the number of characters of UTF-8 text.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

/// Shortens a name at its beginning: its end is more specific.
std::string shortened(const std::string& text) {
  constexpr std::string_view kCut = "...";
  const std::size_t all = length(text);
  if (all <= kWidestCell) return text;
  std::size_t left_out = all - (kWidestCell - kCut.size());
  const auto rest = std::ranges::find_if(
      text, [&](char byte) { return begins_character(byte) && left_out-- == 0; });
  return std::string(kCut).append(rest, text.end());
}

using Lines = std::vector<std::string>;

Lines wrapped(const std::string& text, std::size_t columns) {
  std::istringstream in(reports::answer::wrapped_text(text, columns, 0));
  Lines out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::size_t shown_rows(const Table& table) {
  return table.whole ? table.rows.size() : std::min(kRowsShown, table.rows.size());
}

struct Column {
  Lines heading;
  std::vector<Lines> cells;  ///< a list of names may need several lines
  bool number = false;

  std::size_t width() const { return std::max(widest(heading), widest_cell()); }
  std::size_t widest_cell() const {
    std::size_t most = 0;
    for (const Lines& cell : cells) most = std::max(most, widest(cell));
    return most;
  }
  static std::size_t widest(const Lines& lines) {
    std::size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, length(line));
    return most;
  }
};

/// Breaks a wide cell at spaces and shortens a single long name.
Lines cell_of(const std::string& text) {
  if (length(text) <= kWidestCell) return {text};
  return text.find(' ') == text.npos ? Lines{shortened(text)} : wrapped(text, kWidestCell);
}

Column column_of(const Table& table, std::size_t index, bool last) {
  Column out{{table.headings[index]}, {}, index != 0 && table.is_number(index)};
  for (std::size_t i = 0; i < shown_rows(table); ++i) {
    const Row& row = table.rows[i];
    std::string text = plain(row.cells[index].text);
    Lines cell = last ? Lines{std::move(text)} : cell_of(text);
    if (index == 0 && row.part) cell.front().insert(0, "  ");
    out.cells.push_back(std::move(cell));
  }
  return out;
}

/// Breaks headings at spaces if the table is too wide.
void fold_headings(std::vector<Column>& columns) {
  std::size_t width = 0;
  for (const Column& column : columns) width += kBetween.size() + column.width();
  if (width <= kTextColumns) return;
  for (Column& column : columns) {
    column.heading =
        wrapped(column.heading.front(), std::max(kNarrowestHeading, column.widest_cell()));
  }
}

std::vector<Column> columns_of(const Table& table) {
  const std::size_t count = table.narrow == 0 ? table.headings.size() : table.narrow;
  std::vector<Column> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(column_of(table, i, i + 1 == count));
  fold_headings(out);
  return out;
}

/// Returns a line of the table. text(column) returns a cell.
template <typename Text>
std::string line_of(const std::vector<Column>& columns, const Text& text) {
  std::string line;
  for (const Column& column : columns) {
    const std::string shown = text(column);
    const std::string blanks(column.width() - length(shown), ' ');
    line.append(kBetween).append(column.number ? blanks + shown : shown + blanks);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string headings_text(const std::vector<Column>& columns) {
  std::size_t lines = 0;
  for (const Column& column : columns) lines = std::max(lines, column.heading.size());
  std::string out;
  for (std::size_t left = lines; left > 0; --left) {  // bottom-aligned
    out += line_of(columns, [&](const Column& column) {
      const std::size_t own = column.heading.size();
      return left > own ? std::string() : column.heading[own - left];
    });
  }
  return out;
}

std::string row_text(const std::vector<Column>& columns, std::size_t row) {
  std::size_t lines = 0;
  for (const Column& column : columns) lines = std::max(lines, column.cells[row].size());
  std::string out;
  for (std::size_t line = 0; line < lines; ++line) {
    out += line_of(columns, [&](const Column& column) {
      const Lines& cell = column.cells[row];
      return line < cell.size() ? cell[line] : std::string();
    });
  }
  return out;
}

}  // namespace

std::string table_text(const Table& table) {
  const std::vector<Column> columns = columns_of(table);
  std::string out =
      table.note.empty()
          ? plain(table.title) + ":\n"
          : reports::answer::wrapped_text(
                fmt::format("{}. {}", plain(table.title), plain(table.note)), kTextColumns, 0);
  out += headings_text(columns);
  const std::size_t shown = shown_rows(table);
  for (std::size_t i = 0; i < shown; ++i) {
    out += row_text(columns, i);
    if (table.rows[i].marked) out.insert(out.size() - 1, "  <-");
  }
  const std::size_t left_out = table.rows.size() - shown + table.left_out;
  return left_out == 0 ? out : out + fmt::format("  and {} more: --json -\n", left_out);
}

std::string paste_text(const reports::answer::PasteLines& paste) {
  std::string out = fmt::format("\n{}:\n{}\n", plain(paste.label),
                                reports::answer::indented_text(paste.lines, 2));
  if (paste.note.empty()) return out;
  return out + reports::answer::wrapped_text(plain(paste.note), kTextColumns, 0);
}

std::string section_text(const Section& section) {
  std::string out = section.title.empty() ? "" : plain(section.title) + ":\n";
  for (const std::string& sentence : section.sentences) {
    out += reports::answer::wrapped_text("* " + plain(sentence), kTextColumns, 2);
  }
  for (const reports::answer::PasteLines& paste : section.pastes) out += paste_text(paste);
  for (const reports::answer::Table& table : section.tables) {
    out += (out.empty() ? "" : "\n") + table_text(table);
  }
  return section.empty() ? "" : out;
}

std::string sections_text(std::span<const Section> sections) {
  std::string out;
  for (const Section& section : sections) out += (out.empty() ? "" : "\n") + section_text(section);
  return out;
}

}  // namespace halfscope::cli::terminal
