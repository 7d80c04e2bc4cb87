// SPDX-License-Identifier: Apache-2.0
#include "reports/page/data_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string row_html(const Row& row) {
  std::string out = row.marked ? "<tr class=\"marked\"" : "<tr";
  out += row.chooses ? fmt::format(" data-tensor=\"{}\">", *row.chooses) : ">";
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const Cell& cell = row.cells[i];
    const bool name = i == 0;
    out += fmt::format(
        "<{0}{1}{2}>{3}</{0}>", name ? "th" : "td", name ? " scope=\"row\"" : "", attributes(cell),
        name && row.chooses ? fmt::format("<button type=\"button\">{}</button>", cell.html)
                            : cell.html);
  }
  return out + "</tr>\n";
}

}  // namespace

std::string sort_key(double value) {
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return std::trunc(value) == value ? fmt::format("{}", value) : fmt::format("{:.7g}", value);
}

std::string breakable_name(std::string_view name) {
  constexpr std::string_view kBreak = "<wbr>";
  std::string out;
  for (const char c : answer::html_name(name)) {  // escapes contain no separators
    out += c;
    if (c == '/' || c == '.' || c == '_' || c == ':') out += kBreak;
  }
  return out;
}

std::string bare_table(const std::vector<std::string>& headings, std::span<const Row> rows,
                       std::string_view id) {
  std::string out = "<table class=\"data\"";
  if (!id.empty()) out += fmt::format(" id=\"{}\"", id);
  out += "><thead><tr>";
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const bool number =  // columns of words are left-aligned
        std::ranges::any_of(rows, [&](const Row& row) { return row.cells.at(i).key.has_value(); });
    out += fmt::format("<th scope=\"col\"{}><button>{}</button></th>",
                       number ? "" : " class=\"left\"", answer::html_escape(headings[i]));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Row& row : rows) out += row_html(row);
  return out + "</tbody></table>";
}

std::string data_table(std::string_view name, const std::vector<std::string>& headings,
                       const std::vector<Row>& rows, std::size_t left_out,
                       std::string_view command) {
  const std::size_t written = std::min(rows.size(), kMostTensors);
  return fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">",
                     answer::html_escape(name)) +
         bare_table(headings, std::span(rows).first(written)) +
         "</div>\n<button type=\"button\" class=\"more\" hidden></button>\n" +
         left_out_note(left_out + rows.size() - written, command);
}

std::vector<Row> rows_of(const answer::Table& table) {
  std::vector<Row> out;
  for (const answer::Row& row : table.rows) {
    Row& shown = out.emplace_back();
    shown.marked = row.marked;
    for (const answer::Cell& cell : row.cells) {
      shown.cells.push_back({marked_html(cell.text), cell.key, cell.more, cell.muted});
    }
  }
  return out;
}

std::string table_html(const answer::Table& table) {
  std::string out = "<h3>" + marked_html(table.title) + "</h3>\n";
  if (!table.note.empty()) out += "<p class=\"note\">" + marked_html(table.note) + "</p>\n";
  return out +
         data_table(table.title, table.headings, rows_of(table), table.left_out, table.all_by);
}

}  // namespace halfscope::reports::page
