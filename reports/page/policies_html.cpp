// SPDX-License-Identifier: Apache-2.0
#include "reports/page/policies_html.hpp"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "reports/answer/policies_section.hpp"
#include "reports/answer/policy_lines.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/section_html.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::replay::PolicyStudy;

namespace {

/// Returns a policy with its settings (or code) as HTML that can be broken between the settings.
std::string breakable_policy(std::string_view name) {
  std::string out;
  for (const char c : answer::html_name(name)) {
    out += c;
    if (c == ',' || c == '=' || c == '(') out += "<wbr>";
  }
  return out;
}

/// Returns a sentence with policies in it; "1,000" is not broken.
std::string sentence_html(std::string_view text) {
  std::string out;
  const std::string html = answer::html_name(text);
  for (std::size_t i = 0; i < html.size(); ++i) {
    out += html[i];
    const bool letter = i + 1 < html.size() && html[i + 1] >= 'a' && html[i + 1] <= 'z';
    if (html[i] == ',' && letter) out += "<wbr>";
  }
  return out;
}

/// Returns one paragraph per line; lines to paste form one block.
std::string paragraphs(const std::vector<answer::AnswerLine>& lines) {
  std::string out, code;
  const auto close = [&] {
    if (code.empty()) return;
    out += "<div class=\"paste\"><pre tabindex=\"0\">" + code +
           "</pre><button type=\"button\" class=\"copy\">Copy</button></div>\n";
    code.clear();
  };
  for (const answer::AnswerLine& line : lines) {
    if (line.kind == answer::AnswerLine::Kind::paste) {
      code += (code.empty() ? "" : "\n") + breakable_policy(line.text);
    } else if (!line.text.empty()) {
      close();
      out += fmt::format("<p>{}</p>\n", sentence_html(line.text));
    }
  }
  close();
  return out;
}

std::string pitfalls_html(const PolicyStudy& study) {
  constexpr std::size_t kShown = 3;
  std::string shown, folded;
  std::size_t n = 0;
  for (const answer::PitfallWords& words : answer::pitfalls(study, false)) {
    (n++ < kShown ? shown : folded) +=
        fmt::format("<li><strong>{}</strong>: {}</li>\n",
                    answer::html_name(fmt::format("{}", fmt::join(words.names, ", "))),
                    answer::html_name(words.text));
  }
  if (n == 0) return "";
  std::string out = "<h3>Pitfalls</h3>\n<ul class=\"pitfalls\">\n" + shown + "</ul>\n";
  if (folded.empty()) return out;
  return out + fmt::format(
                   "<details class=\"pitfalls\"><summary>{} more</summary><ul "
                   "class=\"pitfalls\">\n{}</ul></details>\n",
                   n - kShown, folded);
}

std::string replayed_html(const PolicyStudy& study) {
  answer::Section section = answer::policies_section(study);
  const std::string thinned = answer::thinned_text(study);
  if (!thinned.empty()) section.sentences.push_back(thinned);
  return section_html(section) + pitfalls_html(study);
}

/// Returns html(study) for each replayed log and, if `refusals` is true, the others' reasons.
std::string by_log(const Study& study, const std::function<std::string(const PolicyStudy&)>& html,
                   bool refusals) {
  return per_log(study.analysis, [&](std::size_t log) -> std::string {
    for (const PolicyStudy& replayed : study.policies) {
      if (replayed.series.log == study.analysis.logs[log].name) return html(replayed);
    }
    for (const auto& [name, why] : study.not_replayed) {
      if (refusals && name == study.analysis.logs[log].name) {
        return "<p class=\"note\">" + answer::html_name("Not replayed. " + why.text()) + "</p>";
      }
    }
    return refusals ? "" : "<!-- -->";
  });
}

}  // namespace

std::string policies_answer_html(const Study& study) {
  const auto html = [](const PolicyStudy& replayed) {
    return paragraphs(answer::answer_lines(replayed));
  };
  return by_log(study, html, true);
}

std::string policies_html(const Study& study) {
  return study.policies.empty() ? "" : by_log(study, replayed_html, false);
}

}  // namespace halfscope::reports::page
