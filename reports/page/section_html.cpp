// SPDX-License-Identifier: Apache-2.0
#include "reports/page/section_html.hpp"

#include <fmt/format.h>

#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/marked_html.hpp"

namespace halfscope::reports::page {

std::string sentences_html(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += "<li>" + marked_html(sentence) + "</li>\n";
  return out.empty() ? "" : "<ul class=\"details\">\n" + out + "</ul>\n";
}

namespace {

std::string paste_html(const answer::PasteLines& paste) {
  const std::string note =
      paste.note.empty() ? "" : "<p class=\"note\">" + marked_html(paste.note) + "</p>\n";
  return fmt::format(
      "<div class=\"settings\"><p>{}:</p>\n<div class=\"paste\"><pre tabindex=\"0\">{}</pre>"
      "<button type=\"button\">Copy</button></div>\n{}</div>\n",
      marked_html(paste.label), answer::html_escape(paste.lines), note);
}

}  // namespace

std::string section_html(const answer::Section& section) {
  if (section.empty()) return "";
  std::string out;
  if (!section.title.empty()) out += "<h3>" + marked_html(section.title) + "</h3>\n";
  out += sentences_html(section.sentences);
  for (const answer::PasteLines& paste : section.pastes) out += paste_html(paste);
  for (const answer::Table& table : section.tables) out += table_html(table);
  return out;
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

}  // namespace halfscope::reports::page
