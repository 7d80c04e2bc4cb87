// SPDX-License-Identifier: Apache-2.0
#include "reports/page/summary_html.hpp"

#include <fmt/format.h>

#include "reports/answer/text.hpp"
#include "reports/page/marked_html.hpp"

namespace halfscope::reports::page {

using answer::Answer;
using answer::Finding;

namespace {

std::string number_html(const answer::Number& number) {
  return fmt::format(
      "<div class=\"tile {}\"><h3>{}</h3><p class=\"value\">{}</p><p "
      "class=\"detail\">{}</p></div>\n",
      name_of(number.kind), answer::html_escape(number.title), answer::html_escape(number.value),
      marked_html(number.detail));
}

std::string finding_html(const Finding& finding, const Sections& sections) {
  std::string out = fmt::format("<li class=\"harm-{}\"><strong>{}</strong>",
                                name_of(finding.severity), marked_html(finding.title));
  if (!finding.action.empty()) out += " " + marked_html(finding.action);
  if (sections.has(finding.evidence)) {
    out += fmt::format(" <a href=\"#{}\">evidence</a>", name_of(finding.evidence));
  }
  return out + "</li>\n";
}

}  // namespace

std::string summary_html(const Answer& answer) {
  std::string out = "<p class=\"answer\">";
  if (answer.lead) {
    out += fmt::format("<strong>{}</strong> {} ", marked_html(answer.lead->title),
                       marked_html(answer.lead->action));
  }
  const std::string scale = marked_html(answer.scale);
  out += (answer.lead ? scale : "<strong>" + scale + "</strong>") + "</p>\n";
  if (answer.numbers.empty()) return out;
  out += "<div class=\"tiles\">\n";
  for (const answer::Number& number : answer.numbers) out += number_html(number);
  return out + "</div>\n";
}

std::string findings_html(const Answer& answer, const Sections& sections) {
  std::string out;
  if (!answer.clear.empty()) {
    out += fmt::format("<p class=\"clear\">{}</p>\n", marked_html(answer.clear));
  }
  std::string shown, folded;
  for (std::size_t i = 0; i < answer.findings.size(); ++i) {
    (i < kFindingsShown ? shown : folded) += finding_html(answer.findings[i], sections);
  }
  if (!shown.empty()) out += "<ol class=\"findings\">\n" + shown + "</ol>\n";
  if (!folded.empty()) {
    out += fmt::format(
        "<details><summary>{} more</summary><ol class=\"findings\">\n{}</ol></details>\n",
        answer.findings.size() - kFindingsShown, folded);
  }
  if (out.empty()) return "";
  return "<section id=\"findings\" aria-labelledby=\"h-findings\">\n"
         "<h2 id=\"h-findings\">Findings</h2>\n" +
         out + "</section>";
}

}  // namespace halfscope::reports::page
