// SPDX-License-Identifier: Apache-2.0
#include "reports/page/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/answer/captions.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/html.hpp"
#include "reports/page/template.hpp"

namespace halfscope::reports::page {

using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using answer::Answer;
using answer::Finding;
using answer::LogGaps;
using answer::Snippet;

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

/// Number of sentences that are visible; the others are collapsed.
constexpr std::size_t kShown = 3;

std::string items_html(const LogGaps& gaps, std::size_t first, std::size_t end) {
  std::string out = "<ul>";
  for (std::size_t i = first; i < end; ++i) {
    out += "<li>" + answer::html_escape(gaps.unknown[i].text) + "</li>\n";
  }
  return out + "</ul>\n";
}

/// Returns one log's gaps, with a heading if there are several logs.
std::string log_html(const LogGaps& gaps, bool several_logs) {
  const std::size_t all = gaps.unknown.size(), shown = std::min(kShown, all);
  std::string out =
      several_logs ? fmt::format("<h3>{}</h3>\n", marked_html(title_of(gaps, true))) : "";
  out += items_html(gaps, 0, shown);
  if (shown < all) {
    out += fmt::format("<details><summary>{} more</summary>{}</details>\n", all - shown,
                       items_html(gaps, shown, all));
  }
  return out;
}

std::string recording_html(const answer::Recording& recording) {
  return fmt::format(
      "<p class=\"note\">{}</p>\n<div class=\"paste\"><pre "
      "tabindex=\"0\">{}</pre><button type=\"button\">Copy</button></div>\n",
      answer::html_escape(recording.sentence()), answer::html_escape(recording.lines));
}

/// Outcome of all gradients of a log at one scale.
struct AtScale {
  Classes classes;
  std::string words;            ///< "without loss scaling", "at the recommended 1024 (2^10)"
  bool saved_by_other = false;  ///< true: drawn paler, because another scale may avoid it
};

std::string swatches(const AtScale& at, std::string_view kind) {
  const auto swatch = [&](std::string_view shade) {
    return fmt::format("<span class=\"swatch {} {}\"></span>", kind, shade);
  };
  return (at.saved_by_other ? swatch("saved") : "") + swatch("solid");
}

std::string lost_html(const AtScale& at, Interval Classes::*part, const Interval& of,
                      std::string_view kind, std::string_view becomes) {
  return fmt::format("{}{} {} {}", swatches(at, kind),
                     answer::html_escape(answer::class_share_text(at.classes, part, of)), becomes,
                     at.words);
}

std::vector<AtScale> scales_of(const Analysis& analysis, const Recommendation& advice,
                               const answer::Tensors& gradients, const Classes& now) {
  const charts::Window window = charts::gradient_window(analysis, advice);
  const bool other = charts::scales_of(window).size() > 1;
  std::vector<AtScale> out = {{now,
                               analysis.loss_scale == 1
                                   ? "without loss scaling"
                                   : "at loss scale " + answer::scale_text(analysis.loss_scale),
                               other}};
  if (!other) return out;
  Classes then;
  for (const TensorFindings* tensor : gradients) {
    then += tensor->classes_at(analysis.target, *advice.static_log2);
  }
  out.push_back({then,
                 fmt::format("at the {} {}", answer::advised_word(advice),
                             answer::power_text(*advice.static_log2)),
                 false});
  return out;
}

/// Returns a text about the values that no bar shows.
std::string not_drawn(const Analysis& analysis, const Recommendation& advice,
                      const answer::Tensors& gradients, const answer::Series& series) {
  const std::string hidden = answer::hidden_zeros_text(gradients, series);
  return charts::left_out(charts::gradient_window(analysis, advice), series.binades) +
         (hidden.empty() ? "" : " " + hidden);
}

/// Returns one log's caption; an empty string if it has no values to draw.
std::string caption(const Analysis& analysis, const Recommendation& advice,
                    const answer::Tensors& gradients) {
  const answer::Series series = answer::sum(gradients);
  const Interval of = series.counts.finite_nonzero;
  if (of.high == 0) return "";
  std::string lost, overflow;
  bool overflows = false;
  for (const AtScale& at : scales_of(analysis, advice, gradients, series.counts.classes)) {
    lost += (lost.empty() ? "" : ", ") +
            lost_html(at, &Classes::flushed_to_zero, of, "zero", lost.empty() ? "become zero" : "");
    overflow += (overflow.empty() ? "" : ", ") +
                lost_html(at, &Classes::overflow, of, "over", overflow.empty() ? "overflow" : "");
    overflows = overflows || at.classes.overflow.high > 0;
  }
  return fmt::format("{} {}{}.{}", answer::histogram_text(gradients, series, true), lost,
                     overflows ? "; " + overflow : "",
                     not_drawn(analysis, advice, gradients, series));
}

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

std::string gaps_html(const analyzers::underflow::Analysis& analysis) {
  const std::vector<LogGaps> all = answer::could_not_tell(analysis);
  if (all.empty()) return "";
  std::string out = fmt::format(
      "\n\n<section id=\"gaps\" aria-labelledby=\"h-gaps\">\n<h2 id=\"h-gaps\">{}</h2>\n",
      all.size() > 1 ? std::string(answer::kGapsTitle) : marked_html(title_of(all.front(), false)));
  std::string lines;
  for (const LogGaps& gaps : all) {
    out += log_html(gaps, all.size() > 1);
    const std::string recording = recording_html(gaps.recording);
    if (lines.find(recording) == lines.npos) lines += recording;
  }
  return out + lines + "</section>";
}

std::string gradients_html(const Analysis& analysis, const Recommendation& advice) {
  std::string captions;
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const std::string text =
        caption(analysis, advice, answer::counted_of(answer::of_log(analysis.logs[i])));
    if (text.empty()) continue;
    captions +=
        fmt::format("<div data-log=\"{}\">{}{}</div>\n", i,
                    analysis.logs.size() > 1
                        ? fmt::format("<code>{}</code>: ", answer::html_name(analysis.logs[i].name))
                        : "",
                    text);
  }
  if (captions.empty()) return "";
  return "<figure class=\"picture\"><div class=\"chart\" data-chart=\"gradients\" "
         "data-series=\"gradients\"></div>\n<figcaption class=\"note\">" +
         captions + "</figcaption></figure>\n";
}

std::string settings_html(const answer::Answer& answer, const analyzers::Study& study) {
  const std::vector<Snippet>& all = answer.snippets;
  if (all.empty()) return "";
  const Snippet& first = *snippet_of(answer.snippets, study);
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
