// SPDX-License-Identifier: Apache-2.0
#include "reports/page/settings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/answer/snippets.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/island.hpp"

namespace halfscope::reports::page {

using answer::Snippet;

namespace {

nlohmann::ordered_json to_json(const Snippet& snippet) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  const auto put = [&](const char* kind, const answer::Lines& lines) {
    if (lines.lines.empty()) return;
    out[kind] = lines.lines;
    if (!lines.note.empty()) out["notes"][kind] = lines.note;
  };
  put("static", snippet.fixed);
  put("dynamic", snippet.dynamic);
  return out;
}

std::string kinds_html(bool dynamic) {
  constexpr std::string_view kChecked = " checked";
  return fmt::format(
      "<fieldset class=\"axis\"><legend>Loss scale</legend>"
      "<label><input type=\"radio\" name=\"kind\" value=\"static\"{}><span>static</span>"
      "</label><label><input type=\"radio\" name=\"kind\" value=\"dynamic\"{}><span>dynamic</span>"
      "</label></fieldset>",
      dynamic ? "" : kChecked, dynamic ? kChecked : "");
}

}  // namespace

std::string settings_html(const answer::Answer& answer, const analyzers::Study& study) {
  const std::vector<Snippet>& all = answer.snippets;
  if (all.empty()) return "";
  const Snippet& first = *first_snippet(answer, study);
  const answer::Lines& shown = first_lines_of(first, answer);
  nlohmann::ordered_json lines = nlohmann::ordered_json::object();
  std::string options;
  bool both = false;
  for (const Snippet& snippet : all) {
    lines[std::string(snippet.framework)] = to_json(snippet);
    options +=
        fmt::format("<option value=\"{}\"{}>{}</option>", answer::html_escape(snippet.framework),
                    &snippet == &first ? " selected" : "", answer::html_escape(snippet.label));
    both = both || (!snippet.fixed.lines.empty() && !snippet.dynamic.lines.empty());
  }
  return fmt::format(
      "<div class=\"settings\"><div class=\"controls\"><label>Settings for <select "
      "id=\"framework\">{}</select></label>{}</div>\n<div class=\"paste\"><pre id=\"paste\" "
      "tabindex=\"0\">{}</pre><button type=\"button\" id=\"copy\">Copy</button></div>\n<p "
      "class=\"note\" id=\"paste-note\">{}</p></div>\n{}",
      options, both ? kinds_html(&shown == &first.dynamic) : "", answer::html_escape(shown.lines),
      answer::html_escape(shown.note), json_island("settings", lines));
}

}  // namespace halfscope::reports::page
