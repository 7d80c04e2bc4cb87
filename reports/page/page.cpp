// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "reports/answer/captions.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"
#include "reports/export/json.hpp"
#include "reports/page/html.hpp"
#include "reports/page/page_data.hpp"
#include "reports/page/sections.hpp"
#include "reports/page/template.hpp"
#include "reports/page/worst.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;

namespace {

std::string logs_html(const Analysis& analysis) {
  if (analysis.logs.size() < 2) return "";
  std::string out = "<label>Log <select id=\"log\">";
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    out += fmt::format("<option value=\"{}\">{}</option>", i,
                       answer::html_name(analysis.logs[i].name));
  }
  return out + "</select></label>";
}

/// Returns the size of a role in each log. The page shows the text of the selected log.
std::string role_counts(const Analysis& analysis, const charts::Window& window, log::Role role) {
  std::string out;
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const answer::Series series =
        answer::sum(answer::of_role(answer::of_log(analysis.logs[i]), role));
    out += fmt::format(
        "<small data-log=\"{}\">{}, {}, {}.{}</small>", i, answer::plural(series.tensors, "tensor"),
        answer::plural(series.recorded_steps, "step"), answer::plural(series.counts.total, "value"),
        charts::left_out(window, series.binades));
  }
  return out;
}

std::string roles_html(const Analysis& analysis, const charts::Window& window) {
  std::string out;
  for (const log::Role role : answer::roles_in(analysis)) {
    out += fmt::format(
        "<div class=\"role\"><h3>{0} {1}</h3>\n<div class=\"pair\">"
        "<figure class=\"chart\" data-chart=\"histogram\" data-series=\"{0}\"></figure>"
        "<figure class=\"chart\" data-chart=\"heat\" data-series=\"{0}\"></figure></div></div>\n",
        name_of(role), role_counts(analysis, window, role));
  }
  return out;
}

/// Returns the kinds of the logs without tensors, such as "console log".
std::string kinds_text(const Analysis& analysis) {
  std::set<std::string> names;
  for (const auto& log : analysis.logs) {
    for (const auto& kind : log.kinds) names.insert(kind.name);
  }
  if (names.empty()) return "no tensors";
  return answer::listed({names.begin(), names.end()}, names.size());
}

std::string about_html(const Analysis& analysis) {
  std::string out;
  for (const std::string& log : analysis.names()) {
    out += (out.empty() ? "" : ", ") + fmt::format("<code>{}</code>", answer::html_name(log));
  }
  if (analysis.tensors().empty()) return out + ": " + answer::html_escape(kinds_text(analysis));
  return out + fmt::format(": {} against {}", answer::plural(analysis.tensors().size(), "tensor"),
                           answer::html_escape(analysis.target.name));
}

std::string notes_html(const Analysis& analysis) {
  if (analysis.notes.empty()) return "";
  std::string out = fmt::format("<details class=\"notes\"><summary>{} on reading</summary><ul>\n",
                                answer::plural(analysis.notes.size(), "note"));
  for (const std::string& note : analysis.notes) {
    out += "<li>" + answer::html_name(note) + "</li>\n";
  }
  return out + "</ul></details>\n";
}

/// Returns the evidence for the scale: sentences, then a table of neighbouring scales.
std::string scale_evidence_html(const answer::Answer& answer) {
  return sentences_html(answer.details) + tables_html(answer, answer::Evidence::scales);
}

/// Returns the contents of the template's markers <!--halfscope:NAME-->.
Parts parts(const Study& study, std::string_view title) {
  const Analysis& analysis = study.analysis;
  const Recommendation& advice = study.advice;
  const answer::Answer answer = answer::answer_of(study);
  const Sections sections = sections_of(study, answer);
  const bool moved = advice.static_log2.has_value(), bounded = answer::bounded(analysis);
  return {
      {"title", answer::html_name(title)},
      {"about", about_html(analysis)},
      {"summary",
       summary_html(answer) + gradients_html(analysis, advice) + settings_html(answer, study)},
      {"gaps", gaps_html(analysis)},
      {"findings", findings_html(answer, sections)},
      {"if-tensors", analysis.tensors().empty() ? " hidden" : ""},
      {"scales-digest", answer::html_escape(scales_digest(advice))},
      {"roles-digest", answer::plural(answer::roles_in(analysis).size(), "role")},
      {"worst-digest", answer::plural(analysis.tensors().size(), "tensor")},
      {"scale-evidence", scale_evidence_html(answer)},
      {"sections", sections.html},
      {"logs", logs_html(analysis)},
      {"format", answer::html_escape(analysis.target.name)},
      {"scale", answer::scale_text(analysis.loss_scale)},
      {"advised-key",
       moved ? fmt::format(", <span class=\"key advised\">solid at the {} {}</span>",
                           answer::advised_word(advice), answer::power_text(*advice.static_log2))
             : ""},
      {"bounds-key", bounded ? " " + note_html(answer::kBoundsCaption) : ""},
      {"curves-hint", answer::curves_hint(bounded)},
      {"roles", roles_html(analysis, charts::window_of(analysis, advice))},
      {"options", tensor_options_html(analysis)},
      {"kinds", kind_options_html(analysis)},
      {"window", answer::html_escape(answer::window_note(advice))},
      {"worst", worst_table_html(analysis, advice)},
      {"notes", notes_html(analysis)},
      {"kept", kept_text(analysis)},
      {"worst-left-out", left_out_note(analysis.tensors().size() - kept_tensors(analysis).size(),
                                       "analyze LOG --csv FILE</code> or <code>--json FILE")},
      {"islands", json_island("analysis", exports::to_json(study, kept_part(study))) +
                      json_island("recommendation", kept_recommendation(study)) +
                      json_island("charts", charts_json(study))}};
}

}  // namespace

bool has_charts() { return !page_template().empty(); }

void require_charts() {
  if (has_charts()) return;
  throw MissingPart(
      "report: built without the Vega bundle; install the Python package vl-convert-python, set "
      "HALFSCOPE_VEGA_PYTHON to that Python when configuring, and build again");
}

std::string page_html(const Study& study, std::string_view title) {
  require_charts();
  return filled(page_template(), parts(study, title));
}

void write_report(const Study& study, std::string_view title, const std::filesystem::path& out) {
  write_page(page_html(study, title), out);
}

}  // namespace halfscope::reports::page
