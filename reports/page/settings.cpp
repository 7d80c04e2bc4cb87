// SPDX-License-Identifier: Apache-2.0
#include "reports/page/settings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/answer/snippets.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/island.hpp"

namespace halfscope::reports::page {

using answer::Snippet;

namespace {

/// What is shown first: a static scale, where one is recommended.
const std::string& first_lines(const Snippet& snippet) {
  return snippet.fixed.empty() ? snippet.dynamic : snippet.fixed;
}

nlohmann::ordered_json to_json(const Snippet& snippet) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (!snippet.fixed.empty()) out["static"] = snippet.fixed;
  if (!snippet.dynamic.empty()) out["dynamic"] = snippet.dynamic;
  if (!snippet.note.empty()) out["note"] = snippet.note;
  return out;
}

std::string kinds_html() {
  return "<fieldset class=\"axis\"><legend>Loss scale</legend>"
         "<label><input type=\"radio\" name=\"kind\" value=\"static\" checked><span>static</span>"
         "</label><label><input type=\"radio\" name=\"kind\" value=\"dynamic\"><span>dynamic</span>"
         "</label></fieldset>";
}

}  // namespace

std::string settings_html(const analyzers::Study& study) {
  if (study.analysis.target.name != "binary16") return "";  // what the frameworks' scalers serve
  if (!answer::carried_text(study).empty()) return "";      // the scale would be another
  const std::vector<Snippet> all = answer::snippets(study.advice);
  if (all.empty()) return "";
  nlohmann::ordered_json lines = nlohmann::ordered_json::object();
  std::string options;
  bool both = false;
  for (const Snippet& snippet : all) {
    if (first_lines(snippet).empty()) continue;
    lines[std::string(snippet.framework)] = to_json(snippet);
    options +=
        fmt::format("<option value=\"{}\">{}</option>", answer::html_escape(snippet.framework),
                    answer::html_escape(snippet.label));
    both = both || (!snippet.fixed.empty() && !snippet.dynamic.empty());
  }
  return fmt::format(
      "<div class=\"settings\"><div class=\"controls\"><label>Settings for <select "
      "id=\"framework\">{}</select></label>{}</div>\n<div class=\"paste\"><pre id=\"paste\" "
      "tabindex=\"0\">{}</pre><button type=\"button\" id=\"copy\">Copy</button></div>\n<p "
      "class=\"note\" id=\"paste-note\">{}</p></div>\n{}",
      options, both ? kinds_html() : "", answer::html_escape(first_lines(all.front())),
      answer::html_escape(all.front().note), json_island("settings", lines));
}

}  // namespace halfscope::reports::page
