// SPDX-License-Identifier: Apache-2.0
#include "reports/page/sections.hpp"

#include <fmt/format.h>

#include <functional>
#include <span>
#include <vector>

#include "reports/answer/captions.hpp"
#include "reports/answer/claims.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/policy_lines.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/ranks.hpp"
#include "reports/answer/recipes.hpp"
#include "reports/answer/reduction.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/answer/updates.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/html.hpp"
#include "reports/page/page_data.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::replay::PolicyStudy;
using analyzers::underflow::Analysis;
using answer::Evidence;

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

std::string answer_html(const PolicyStudy& study) {
  const auto paragraph = [](const std::string& text) {
    return text.empty() ? "" : fmt::format("<p>{}</p>\n", sentence_html(text));
  };
  const answer::Section answer = answer::replay_answer(study);
  std::string out;
  for (const std::string& sentence : answer.sentences) out += paragraph(sentence);
  for (const answer::PasteLines& paste : answer.pastes) {
    std::vector<std::string> lines;
    for (const auto line : std::views::split(paste.lines, '\n')) {
      lines.push_back(breakable_policy(std::string_view(line.begin(), line.end())));
    }
    out += paragraph(paste.label + ":") + "<div class=\"paste\"><pre tabindex=\"0\">" +
           fmt::format("{}", fmt::join(lines, "\n")) +
           "</pre><button type=\"button\" class=\"copy\">Copy</button></div>\n" +
           paragraph(paste.note);
  }
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

/// Returns each log's own policy and the lines to paste, or why the log was not replayed.
std::string policies_answer_html(const Study& study) { return by_log(study, answer_html, true); }

/// Returns each log's table of all policies, the policies that are not drawn, and pitfalls.
std::string policies_html(const Study& study) {
  return study.policies.empty() ? "" : by_log(study, replayed_html, false);
}

std::string section(std::string_view id, std::string_view title, std::string_view digest,
                    std::string_view body, bool open = false) {
  return fmt::format(
      "<details class=\"section\" id=\"{}\"{}><summary><h2>{}</h2><span class=\"digest\">{}</span>"
      "</summary>\n<div class=\"body\">\n{}</div></details>\n\n",
      id, open ? " open" : "", title, answer::html_escape(digest), body);
}

/// Returns <option> elements: all weights together, and each weight whose data is on the page.
std::string weight_options_html(const Analysis& analysis) {
  std::string out = "<option value=\"all\">all weights</option>";
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    const answer::Tensors weights = answer::with_updates(answer::of_log(analysis.logs[log]));
    const std::size_t drawn = std::min(weights.size(), charts::kWeightsDrawn);
    for (const auto* tensor : std::span(weights).first(drawn)) {
      out +=
          fmt::format("<option value=\"{}\" data-log=\"{}\">{}</option>\n",
                      analysis.tensors().index_of(*tensor), log, answer::html_name(tensor->name));
    }
  }
  return out;
}

std::string updates_charts(const Study& study, const answer::UpdateSum& sum) {
  const analyzers::underflow::Target& target = study.analysis.target;
  constexpr std::string_view kByWeight = " data-key=\"weight\"";
  return fmt::format(
             "<div class=\"bar\"><div class=\"controls\"><label>Weight <select id=\"weight\">{}"
             "</select></label></div></div>\n",
             weight_options_html(study.analysis)) +
         chart_html(answer::update_map_caption(
                        target, charts::update_window(sum.table, target).left_out > 0),
                    "update-map", kByWeight) +
         "<div class=\"pair\">" +
         chart_html(answer::update_ratios_caption(charts::first_ratio(target)), "update-ratios",
                    kByWeight) +
         chart_html(answer::kUpdateErrorsCaption, "update-errors", kByWeight) + "</div>\n" +
         chart_html(answer::outcomes_caption(charts::kBarsDrawn), "outcomes");
}

std::string updates_section(const Study& study) {
  const Analysis& analysis = study.analysis;
  const answer::UpdateSum sum = answer::all_updates(analysis);
  if (sum.weights == 0) return "";
  const auto of_log = [&](std::size_t log) {
    answer::Section section = answer::updates_section(analysis, answer::of_log(analysis.logs[log]));
    section.title.clear();  // the details element shows the title
    return section_html(section);
  };
  return section(answer::name_of(Evidence::updates), "Weight updates that are lost",
                 answer::updates_digest(analysis, sum),
                 updates_charts(study, sum) + per_log(analysis, of_log));
}

/// Returns the section on logs without counts.
std::string peaks_section(const Study& study) {
  const answer::Table table = answer::peaks_table(study);
  return table.empty() ? ""
                       : section("peaks", "Largest magnitudes",
                                 answer::plural(study.peaks.size(), "tensor") + " without counts",
                                 table_html(table));
}

/// Returns the section on logs with statistics of quantised tensors: a heat map for each kind of
/// tensor with losses.
std::string quantised_section(const Study& study) {
  if (study.quantised.empty()) return "";
  std::string body;
  for (answer::Section& log : answer::quantised_sections(study)) {
    if (study.quantised.size() == 1) log.title.clear();  // the details element shows the title
    body += section_html(log);
  }
  std::string maps;
  std::vector<std::string> quiet;
  for (const QuantisedMap& map : quantised_maps(study)) {
    if (!map.drawn()) {
      quiet.push_back(map.tensors);
      continue;
    }
    maps += chart_html(answer::quantised_caption(map.tensors), "fp8",
                       fmt::format(" data-key=\"{}\"", answer::html_escape(map.key)));
  }
  if (!quiet.empty()) maps += "<p class=\"note\">" + answer::quiet_text(quiet) + "</p>\n";
  return section(answer::name_of(Evidence::quantised), "Underflow in FP8",
                 answer::quantised_digest(study), maps + body, study.analysis.tensors().empty());
}

/// Returns a bar for each kind of layer: the share of its weights that moved, over those that did
/// not.
std::string strips_html(const analyzers::weights::Movement& movement) {
  std::string out;
  for (const auto& kind : movement.kinds) {
    const double share = static_cast<double>(kind.moved) / static_cast<double>(kind.elements);
    out += fmt::format(
        "<div role=\"listitem\"><span>{}</span><svg aria-hidden=\"true\"><rect width=\"100%\"/>"
        "<rect class=\"moved\" width=\"{:.2f}%\"/></svg><span>{}</span></div>\n",
        answer::html_name(kind.kind), 100 * share, answer::html_escape(answer::strip_text(kind)));
  }
  return "<p class=\"note\"><span class=\"swatch moved\"></span>moved <span "
         "class=\"swatch\"></span>never moved</p>\n<div class=\"strips\" role=\"list\">\n" +
         out + "</div>\n";
}

/// Returns the section on weights that move, and on FP32 tensors that hold fewer bits.
std::string weights_section(const Study& study) {
  std::string body;
  for (const auto& movement : study.movements) {
    body += "<h3>" +
            answer::html_escape(answer::strips_title(movement, study.movements.size() > 1)) +
            "</h3>\n" + strips_html(movement);
  }
  const answer::Section claims = answer::claims_section(study.claims);
  if (body.empty() && claims.empty()) return "";
  return section(answer::name_of(Evidence::weights), "Weights that move",
                 answer::weights_digest(study), body + section_html(claims));
}

/// Returns the section on the losses of 16-bit sums.
std::string sums_section(const Study& study) {
  answer::Section sums = answer::reduction_section(study.reductions);
  if (sums.empty()) return "";
  sums.title.clear();  // the details element shows the title
  return section(answer::name_of(Evidence::reductions), "Sums in 16 bits",
                 std::string(answer::reductions_digest(study.reductions)), section_html(sums));
}

/// Returns the section on logs in which a rank differs: a strip and a map for each role.
std::string ranks_section(const Study& study) {
  std::vector<answer::Section> logs = answer::differing_ranks(study);
  if (logs.empty()) return "";
  std::string charts, body;
  for (const log::Role role : drawn_ranks(study)) {
    const std::string key = fmt::format(" data-key=\"{}\"", log::name_of(role));
    charts += chart_html(answer::rank_strip_caption(role), "rank-strip", key) +
              chart_html(answer::rank_map_caption(role), "rank-map", key);
  }
  for (answer::Section& log : logs) {
    if (study.ranks.size() == 1) log.title.clear();  // the details element shows the title
    body += section_html(log);
  }
  return section(answer::name_of(Evidence::ranks), "Ranks side by side",
                 answer::ranks_digest(study), charts + body, true);
}

/// Returns the section on logs of other tools that have the loss scale or skipped steps.
std::string timeline_section(const Study& study) {
  const std::vector<answer::Section> logs = answer::timeline_sections(study);
  if (logs.empty()) return "";
  std::string body;
  for (const answer::Section& log : logs) body += section_html(log);
  return section(
      answer::name_of(Evidence::timeline), "History of the loss scale",
      logs.front().sentences.front(),
      draws_timeline(study) ? body + chart_html(answer::timeline_caption(study), "timeline") : body,
      study.analysis.tensors().empty());
}

std::string overflow_section(const Study& study) {
  answer::Table headroom = answer::headroom_table(study);
  headroom.note.clear();  // the chart shows it
  const std::vector<answer::Section> events = answer::event_sections(study);
  if (headroom.empty() && events.empty()) return "";
  std::string body;
  for (const answer::Section& event : events) {
    body += "<div class=\"event\">" + section_html(event) + "</div>\n";
  }
  if (!headroom.empty()) {
    body += chart_html(answer::headroom_caption(study), "rooms") +
            chart_html(answer::kHeadroomStepsCaption, "trends") + table_html(headroom);
  }
  return section(answer::name_of(Evidence::overflow), "Overflow and headroom",
                 answer::overflow_digest(study), body);
}

std::string policies_section(const Study& study) {
  if (study.policies.empty() && study.not_replayed.empty()) return "";
  std::string charts;
  if (!study.policies.empty()) {
    charts = chart_html(answer::kPolicyScalesCaption, "policy-scales") +
             chart_html(answer::kPolicyFlushedCaption, "policy-flushed");
  }
  return section(answer::name_of(Evidence::policies), "Loss-scaling policies, replayed",
                 answer::policies_digest(study),
                 policies_answer_html(study) + charts + policies_html(study));
}

std::string formats_section(const Study& study) {
  answer::Section formats = answer::formats_section(study);
  if (formats.empty()) return "";
  formats.title.clear();  // the details element shows the title
  return section(answer::name_of(Evidence::formats), "Which formats fit",
                 answer::formats_digest(study.analysis),
                 section_html(formats) + chart_html(answer::kFitsCaption, "fits") +
                     table_html(answer::formats_table(study.analysis)));
}

std::string recipes_section(const Study& study) {
  answer::Section recipes = answer::recipes_section(study);
  if (recipes.empty()) return "";
  recipes.title.clear();  // the details element shows the title
  std::string chart;
  if (!answer::operands(study.analysis).empty()) {
    chart = chart_html(answer::kRecipesCaption, "recipes");
  }
  return section(answer::name_of(Evidence::recipes), "Recipes of block formats",
                 answer::recipes_digest(study.analysis), chart + section_html(recipes));
}

std::string advice_section(const Study& study, const answer::Answer& answer) {
  const std::string body = tables_html(answer, Evidence::advice);
  if (body.empty()) return "";
  std::string digest;
  const auto tell = [&](bool is, const std::string& what) {
    if (is) digest += (digest.empty() ? "" : "; ") + what;
  };
  const auto& advice = study.advice;
  tell(!advice.per_layer.empty(),
       "a scale each for " + answer::plural(advice.per_layer.size(), "layer"));
  tell(!advice.keep_in_fp32.empty(), fmt::format("{} to keep in FP32", advice.keep_in_fp32.size()));
  return section(answer::name_of(Evidence::advice), "More of the recommendation", digest, body);
}

}  // namespace

std::string tables_html(const answer::Answer& answer, Evidence section) {
  std::string out;
  for (const answer::Table& table : answer.tables) {
    if (table.section == section) out += table_html(table);
  }
  return out;
}

std::string scales_digest(const analyzers::recommend::Recommendation& advice) {
  if (!advice.static_log2) return "none is recommended";
  std::string out =
      fmt::format("{} {}", answer::advised_word(advice), answer::power_text(*advice.static_log2));
  if (advice.lowest_log2 && advice.highest_log2 && *advice.lowest_log2 <= *advice.highest_log2) {
    out += fmt::format("; good from 2^{} to 2^{}", *advice.lowest_log2, *advice.highest_log2);
  }
  return out;
}

Sections sections_of(const Study& study, const answer::Answer& answer) {
  Sections all;
  const auto add = [&](Evidence evidence, const std::string& html) {
    if (!html.empty()) all.evidence.insert(evidence);
    all.html += html;
  };
  all.html = peaks_section(study);
  add(Evidence::ranks, ranks_section(study));
  add(Evidence::quantised, quantised_section(study));
  add(Evidence::timeline, timeline_section(study));
  add(Evidence::updates, updates_section(study));
  add(Evidence::weights, weights_section(study));
  add(Evidence::overflow, overflow_section(study));
  add(Evidence::policies, policies_section(study));
  add(Evidence::formats, formats_section(study));
  add(Evidence::recipes, recipes_section(study));
  add(Evidence::reductions, sums_section(study));
  add(Evidence::advice, advice_section(study, answer));
  return all;
}

}  // namespace halfscope::reports::page
