// SPDX-License-Identifier: Apache-2.0
// The section on loss-scaling policies, but for its charts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "reports/answer/policy_lines.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/evidence.hpp"

namespace halfscope::reports::page {

using namespace analyzers;

using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;

namespace {

/// Code or a policy with its settings, which a narrow column may break between them.
std::string breakable_policy(std::string_view name) {
  std::string out;
  for (const char c : answer::html_name(name)) {
    out += c;
    if (c == ',' || c == '=' || c == '(') out += "<wbr>";
  }
  return out;
}

/// Text that may be broken, but for "12 %".
std::string with_whole_shares(const std::string& html) {
  std::string out;
  for (const char c : html) {
    if (c == '%' && out.ends_with(' ')) out.replace(out.size() - 1, 1, "&nbsp;");
    out += c;
  }
  return out;
}

/// A sentence with policies in it: "1,000" stays whole.
std::string sentence_html(std::string_view text) {
  std::string out;
  const std::string html = with_whole_shares(answer::html_name(text));
  for (std::size_t i = 0; i < html.size(); ++i) {
    out += html[i];
    const bool letter = i + 1 < html.size() && html[i + 1] >= 'a' && html[i + 1] <= 'z';
    if (html[i] == ',' && letter) out += "<wbr>";
  }
  return out;
}

std::size_t lost_steps(const Trace& trace) {
  return trace.skipped.size() + trace.applied_nonfinite.size();
}

std::string share_range(const std::optional<std::pair<double, double>>& share) {
  return share ? answer::share_range_text(share->first, share->second) : "-";
}

Cell share_cell(const std::optional<std::pair<double, double>>& share, std::string title = "") {
  if (!share) return {"-", std::nullopt, "", true};
  return {with_whole_shares(answer::html_escape(share_range(share))), share->second,
          std::move(title)};
}

/// A scale as a table sorts it; infinity beyond all others.
Cell end_cell(const Trace& trace, const replay::StepSeries& series) {
  const double log2 = std::log2(trace.final_scale);
  const double key = std::isfinite(log2) ? log2 : trace.final_scale > 0 ? 1e4 : -1e4;
  return {answer::html_escape(answer::end_text(trace, series)), key,
          trace.error ? trace.error->message : ""};
}

Cell skipped_cell(const Trace& trace) {
  return {answer::skipped_text(trace),
          static_cast<double>(lost_steps(trace) + trace.unknown.size())};
}

Row row_of(const std::string& names, const Trace& trace, const replay::StepSeries& series) {
  const std::string worst =
      trace.worst_flushed ? "at step " + answer::step_text(trace.worst_step) : "";
  const std::string why = answer::why_text(trace);
  return {{{names},
           {with_whole_shares(answer::html_escape(answer::lost_text(trace, series))),
            trace.lost_share()},
           skipped_cell(trace),
           share_cell(trace.mean_flushed),
           share_cell(trace.worst_flushed, worst),
           {answer::html_escape(answer::scales_text(trace))},
           end_cell(trace, series),
           {answer::html_escape(why.empty() ? "-" : why), std::nullopt, "", why.empty()}}};
}

/// "torch, apex, keras2"
std::string names_html(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  std::string out;
  for (const std::size_t i : group) {
    out += (out.empty() ? "" : ", ") + breakable_policy(answer::trace_name(study.traces[i]));
  }
  return out;
}

std::string table_html(const PolicyStudy& study) {
  std::vector<Row> rows;
  for (const auto& [name, trace] : answer::references(study)) {
    rows.push_back(row_of(breakable_policy(name), *trace, study.series));
    rows.back().marked = true;
  }
  for (const auto& group : study.groups) {
    const Trace& trace = study.traces[group.front()];
    if (!trace.unavailable.empty()) continue;
    rows.push_back(row_of(names_html(study, group), trace, study.series));
  }
  return data_table("Loss-scaling policies",
                    {"policy", "lost", "steps skipped", "flushed, mean", "flushed, worst",
                     "loss scale", "in the end", "why skipped"},
                    rows);
}

/// What the table needs to be understood, a sentence each.
std::string footnotes_html(const PolicyStudy& study) {
  std::string out;
  const auto note = [&](const std::string& text) {
    out += "<li>" + answer::html_name(text) + "</li>\n";
  };
  note(
      "Shaded: the run itself and the recommended settings. Below: best first, by the share of "
      "gradient values lost. A skipped step loses all its values. All values are lost from the "
      "step on at which training ends or a weight becomes NaN or infinite. Other steps lose what "
      "is flushed.");
  note(
      "Flushed shares are means over the steps with histograms. At the top of the page all values "
      "are pooled, so the numbers differ.");
  note("Gradients are taken as recorded: what a policy does to the weights is not simulated.");
  const auto any = [&](const auto& is) {
    return std::any_of(study.traces.begin(), study.traces.end(), is);
  };
  if (any([](const Trace& t) { return !t.unknown.empty(); })) {
    note(answer::unknown_steps_text());
  }
  if (any([](const Trace& t) { return !t.applied_nonfinite.empty(); })) {
    note("Spoiled: the policy lets NaN or infinity into the weights instead of skipping.");
  }
  if (study.series.flushed.empty()) note("No step has histograms, so zeros are unknown.");
  const std::string thinned = answer::thinned_text(study);
  if (!thinned.empty()) note(thinned);
  for (const Trace& trace : study.traces) {
    if (!trace.unavailable.empty()) {
      note(answer::trace_name(trace) + " is left out: " + trace.unavailable + ".");
    }
  }
  return "<ul class=\"note footnotes\">\n" + out + "</ul>\n";
}

/// A paragraph a line; lines to paste are together.
std::string paragraphs(const std::vector<answer::AnswerLine>& lines) {
  std::string out, code;
  const auto close = [&] {
    if (code.empty()) return;
    out += "<div class=\"paste\"><pre tabindex=\"0\">" + code +
           "</pre><button type=\"button\" class=\"copy\">Copy</button></div>\n";
    code.clear();
  };
  for (const answer::AnswerLine& line : lines) {
    if (line.paste) {
      code += (code.empty() ? "" : "\n") + breakable_policy(line.text);
    } else if (!line.text.empty()) {
      close();
      out += fmt::format("<p>{}</p>\n", sentence_html(line.text));
    }
  }
  close();
  return out;
}

std::string traps_html(const PolicyStudy& study) {
  constexpr std::size_t kShown = 3;
  std::string shown, folded;
  std::size_t n = 0;
  for (const auto& [names, trap] : answer::traps_text(study)) {
    (n++ < kShown ? shown : folded) += fmt::format(
        "<li><strong>{}</strong>: {}</li>\n", answer::html_name(names), answer::html_name(trap));
  }
  if (n == 0) return "";
  std::string out = "<h3>Pitfalls in this run</h3>\n<ul class=\"traps\">\n" + shown + "</ul>\n";
  if (folded.empty()) return out;
  return out + fmt::format(
                   "<details class=\"traps\"><summary>{} more</summary><ul class=\"traps\">\n{}"
                   "</ul></details>\n",
                   n - kShown, folded);
}

/// Of each log that was replayed; of the others why not.
std::string by_log(const Study& study, const std::function<std::string(const PolicyStudy&)>& told,
                   bool refusals) {
  return per_log(study.analysis, [&](std::size_t log) -> std::string {
    for (const PolicyStudy& replayed : study.policies) {
      if (replayed.series.log == study.analysis.logs[log].name) return told(replayed);
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
  const auto answer = [](const PolicyStudy& replayed) {
    return paragraphs(answer::answer_lines(replayed));
  };
  return by_log(study, answer, true);
}

std::string policies_html(const Study& study) {
  if (study.policies.empty()) return "";
  return by_log(
      study,
      [](const PolicyStudy& replayed) {
        return "<h3>All policies, beside the run itself and the recommended settings</h3>\n" +
               table_html(replayed) + footnotes_html(replayed) + traps_html(replayed);
      },
      false);
}

std::string policies_digest(const Study& study) {
  if (study.policies.empty()) return "not replayed";
  const PolicyStudy& first = study.policies.front();
  std::string out = answer::plural(first.traces.size(), "policy");
  if (first.traces.size() != 1) out = answer::count_text(first.traces.size()) + " policies";
  out += " over " + answer::plural(first.series.steps.size(), "step");
  if (!first.recorded) return out;
  out += fmt::format("; the run itself skipped {}", answer::skips_text(*first.recorded));
  const std::size_t spoiled = first.recorded->applied_nonfinite.size();
  return spoiled == 0 ? out : out + fmt::format(" and spoiled {}", answer::count_text(spoiled));
}

}  // namespace halfscope::reports::page
