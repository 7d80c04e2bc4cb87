// SPDX-License-Identifier: Apache-2.0
#include "reports/page/data_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "reports/answer/text.hpp"
#include "reports/page/kept.hpp"
#include "reports/page/marked_html.hpp"

namespace halfscope::reports::page {

namespace {

std::string attributes(const Cell& cell) {
  std::string out;
  if (cell.key) out += fmt::format(" data-v=\"{}\"", sort_key(*cell.key));
  if (!cell.title.empty()) out += fmt::format(" title=\"{}\"", answer::html_escape(cell.title));
  if (cell.muted) out += " class=\"nil\"";
  return out;
}

}  // namespace

std::string sort_key(double value) {
  return std::trunc(value) == value ? fmt::format("{}", value) : fmt::format("{:.7g}", value);
}

std::string breakable_name(std::string_view name) {
  constexpr std::string_view kBreak = "<wbr>";
  std::string out;
  for (const char c : answer::html_name(name)) {  // escapes hold none of the separators
    out += c;
    if (c == '/' || c == '.' || c == '_' || c == ':') out += kBreak;
  }
  return out;
}

std::string data_table(std::string_view name, const std::vector<std::string>& headings,
                       const std::vector<Row>& rows, std::size_t left_out,
                       std::string_view command) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
      "<table class=\"data\"><thead><tr>",
      answer::html_escape(name));
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const bool text = rows.empty() || !rows.front().cells.at(i).key;  // words stand on the left
    out += fmt::format("<th scope=\"col\"{}><button>{}</button></th>",
                       text ? " class=\"left\"" : "", answer::html_escape(headings[i]));
  }
  out += "</tr></thead>\n<tbody>\n";
  const std::size_t written = std::min(rows.size(), kMostTensors);
  for (const Row& row : std::span(rows).first(written)) {
    out += row.marked ? "<tr class=\"marked\">" : "<tr>";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string_view tag = i == 0 ? "th" : "td";
      out += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, i == 0 ? " scope=\"row\"" : "",
                         attributes(row.cells[i]), row.cells[i].html);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n<button type=\"button\" class=\"more\" hidden></button>\n" +
         left_out_note(left_out + rows.size() - written, command);
}

std::string table_html(const answer::Table& table) {
  std::vector<Row> rows;
  for (const answer::Row& row : table.rows) {
    Row& shown = rows.emplace_back();
    shown.marked = row.marked;
    for (const answer::Cell& cell : row.cells) {
      shown.cells.push_back({marked_html(cell.text), cell.key, cell.more, cell.muted});
    }
  }
  std::string out = "<h3>" + answer::html_escape(table.title) + "</h3>\n";
  if (!table.note.empty()) out += "<p class=\"note\">" + marked_html(table.note) + "</p>\n";
  return out + data_table(table.title, table.headings, rows, table.left_out, table.all_by);
}

}  // namespace halfscope::reports::page
