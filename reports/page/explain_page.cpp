// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "reports/answer/text.hpp"
#include "reports/page/html.hpp"
#include "reports/page/page.hpp"
#include "reports/page/template.hpp"

namespace halfscope::reports::page {

namespace {

/// Returns the style element of the page that compares two runs.
std::string_view style() {
  constexpr std::string_view kEnd = "</style>";
  const std::string_view page = compare_template();
  const std::size_t begin = page.find("<style>");
  return page.substr(begin, page.find(kEnd) + kEnd.size() - begin);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Returns a section whose headings do not sort, which needs a script.
std::string still_html(const answer::Section& section) {
  return replaced(replaced(section_html(section), "<button>", "<span>"), "</button></th>",
                  "</span></th>");
}

}  // namespace

std::string sections_page(std::span<const answer::Section> sections, std::string_view title) {
  require_charts();  // the style is part of that bundle
  std::string body;
  for (const answer::Section& section : sections) {
    body += "<section>\n" + still_html(section) + "</section>\n";
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-theme=\"auto\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n{1}\n</head>\n<body>\n<header><h1>{0}</h1></"
      "header>\n"
      "<main>\n{2}</main>\n</body>\n</html>\n",
      answer::html_name(title), style(), body);
}

}  // namespace halfscope::reports::page
