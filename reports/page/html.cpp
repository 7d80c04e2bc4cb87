// SPDX-License-Identifier: Apache-2.0
#include "reports/page/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/text.hpp"
#include "reports/page/page.hpp"
#include "reports/page/template.hpp"
#include "reports/page/worst.hpp"

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

std::string paste_html(const answer::PasteLines& paste) {
  const std::string note =
      paste.note.empty() ? "" : "<p class=\"note\">" + marked_html(paste.note) + "</p>\n";
  return fmt::format(
      "<div class=\"settings\"><p>{}:</p>\n<div class=\"paste\"><pre tabindex=\"0\">{}</pre>"
      "<button type=\"button\">Copy</button></div>\n{}</div>\n",
      marked_html(paste.label), answer::html_escape(paste.lines), note);
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
                       std::string_view id, bool scripts) {
  std::string out = "<table class=\"data\"";
  if (!id.empty()) out += fmt::format(" id=\"{}\"", id);
  out += "><thead><tr>";
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const bool number =  // columns of words are left-aligned
        std::ranges::any_of(rows, [&](const Row& row) { return row.cells.at(i).key.has_value(); });
    out += fmt::format("<th scope=\"col\"{}>{}{}{}</th>", number ? "" : " class=\"left\"",
                       scripts ? "<button>" : "", answer::html_escape(headings[i]),
                       scripts ? "</button>" : "");
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

std::string table_html(const answer::Table& table, bool scripts) {
  std::string out = "<h3>" + marked_html(table.title) + "</h3>\n";
  if (!table.note.empty()) out += "<p class=\"note\">" + marked_html(table.note) + "</p>\n";
  const std::vector<Row> rows = rows_of(table);
  return out + (scripts
                    ? data_table(table.title, table.headings, rows, table.left_out, table.all_by)
                    : bare_table(table.headings, rows, "", false));
}

std::string sentences_html(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += "<li>" + marked_html(sentence) + "</li>\n";
  return out.empty() ? "" : "<ul class=\"details\">\n" + out + "</ul>\n";
}

std::string section_html(const answer::Section& section, bool scripts) {
  if (section.empty()) return "";
  std::string out;
  if (!section.title.empty()) out += "<h3>" + marked_html(section.title) + "</h3>\n";
  out += sentences_html(section.sentences);
  for (const answer::PasteLines& paste : section.pastes) out += paste_html(paste);
  for (const answer::Table& table : section.tables) out += table_html(table, scripts);
  return out;
}

std::string sections_page(std::span<const answer::Section> sections, std::string_view title) {
  const std::string_view other = compare_template();  // empty without charts, as is the style then
  const std::size_t begin = other.find("<style>"), end = other.find("</style>");
  std::string body;
  for (const answer::Section& section : sections) body += section_html(section, false);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-theme=\"auto\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n{1}</style>\n"
      "<header><h1>{0}</h1></header>\n<main><section>\n{2}</section></main>\n</html>\n",
      answer::html_name(title), end == other.npos ? "<style>" : other.substr(begin, end - begin),
      body);
}

std::string note_html(const answer::Caption& caption) {
  std::string out = answer::html_escape(caption.note);
  for (const answer::Key& key : caption.keys) {
    out +=
        fmt::format(" <span class=\"key {}\">{}</span>", key.style, answer::html_escape(key.text));
  }
  return out;
}

std::string chart_html(const answer::Caption& caption, std::string_view chart,
                       std::string_view more) {
  const std::string note = note_html(caption);
  return fmt::format(
      "<div><h3>{}</h3>{}<figure class=\"chart\" data-chart=\"{}\"{}></figure></div>\n",
      answer::html_escape(caption.title), note.empty() ? "" : "<p class=\"note\">" + note + "</p>",
      chart, more);
}

std::string per_log(const analyzers::underflow::Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block) {
  std::string out;
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const std::string text = block(i);
    out += fmt::format("<div data-log=\"{}\">{}</div>\n", i,
                       text.empty() ? "<p class=\"note\">This log has none.</p>" : text);
  }
  return out;
}

std::string marked_html(std::string_view sentence) {
  std::string out;
  for (const answer::Piece& piece : answer::pieces(sentence)) {
    out += piece.code ? "<code>" + breakable_name(piece.text) + "</code>"
                      : answer::html_escape(piece.text);
  }
  return out;
}

}  // namespace halfscope::reports::page
