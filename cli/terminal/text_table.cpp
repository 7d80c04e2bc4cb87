// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/answer/marks.hpp"

namespace halfscope::cli::terminal {
namespace {

using reports::answer::Cell;
using reports::answer::Row;
using reports::answer::Table;

constexpr std::size_t kShown = 12;  // the JSON has all
constexpr std::size_t kWidestCell = 48;

/// The end of a name tells more than its beginning.
std::string shortened(std::string text) {
  return text.size() <= kWidestCell ? text : "..." + text.substr(text.size() - (kWidestCell - 3));
}

using Texts = std::vector<std::string>;

std::vector<Texts> texts_of(const Table& table) {
  std::vector<Texts> rows = {table.headings};
  for (std::size_t i = 0; i < std::min(kShown, table.rows.size()); ++i) {
    Texts& row = rows.emplace_back();
    for (const Cell& cell : table.rows[i].cells) {
      const bool last = &cell == &table.rows[i].cells.back();
      std::string text = reports::answer::plain(cell.text);
      row.push_back(last ? std::move(text) : shortened(std::move(text)));
    }
    if (table.rows[i].marked) row.back() += "  <-";
  }
  return rows;
}

}  // namespace

std::string table_text(const Table& table) {
  const std::vector<Texts> rows = texts_of(table);
  std::vector<std::size_t> widths(table.headings.size());
  for (const Texts& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out = table.title + (table.note.empty() ? ":\n" : ". " + table.note + "\n");
  for (const Texts& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = table.rows.front().cells[i].key.has_value() && i != 0;
      line += number ? fmt::format("  {:>{}}", row[i], widths[i])
                     : fmt::format("  {:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return table.rows.size() <= kShown
             ? out
             : out + fmt::format("  and {} more: --json -\n", table.rows.size() - kShown);
}

}  // namespace halfscope::cli::terminal
