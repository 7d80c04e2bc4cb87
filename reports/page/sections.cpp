// SPDX-License-Identifier: Apache-2.0
#include "reports/page/sections.hpp"

#include <fmt/format.h>

#include "reports/answer/formats.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/peaks_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"
#include "reports/answer/update_sums.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/evidence.hpp"
#include "reports/page/formats_html.hpp"
#include "reports/page/peaks_html.hpp"
#include "reports/page/timeline_html.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using answer::Evidence;

namespace {

std::string section(std::string_view id, std::string_view title, std::string_view digest,
                    std::string_view body) {
  return fmt::format(
      "<details class=\"section\" id=\"{}\"><summary><h2>{}</h2><span class=\"digest\">{}</span>"
      "</summary>\n<div class=\"body\">\n{}</div></details>\n\n",
      id, title, answer::html_escape(digest), body);
}

std::string figure(std::string_view chart, std::string_view more = "") {
  return fmt::format("<figure class=\"chart\" data-chart=\"{}\"{}></figure>", chart, more);
}

std::string titled(std::string_view title, std::string_view note, std::string_view chart,
                   std::string_view more = "") {
  return fmt::format("<div><h3>{}</h3><p class=\"note\">{}</p>{}</div>\n", title, note,
                     figure(chart, more));
}

/// What the histogram of ratios leaves out.
std::string far_out(const UpdateTable& table, const analyzers::underflow::Target& target) {
  const int first = charts::first_ratio(target);
  std::uint64_t count = 0;
  for (const auto& [e, cell] : table.ratios) count += e < first ? cell.count : 0;
  return count == 0
             ? ""
             : fmt::format(" Not drawn: {} below 2^{}.", answer::plural(count, "update"), first);
}

std::string updates_charts(const Study& study, const answer::UpdateSum& sum) {
  const analyzers::underflow::Target& target = study.analysis.target;
  const std::string format = answer::people_say(target.name);
  const charts::UpdateWindow window = charts::update_window(sum.table, target);
  const std::string rule = std::to_string(std::uint64_t{1} << target.format.precision);
  constexpr std::string_view kByWeight = " data-key=\"weight\"";
  return fmt::format(
             "<div class=\"bar\"><p class=\"note\">An update is lost in pure {} where it is too "
             "small for the format, or where the weight rounds back to what it was. Updates are "
             "counted one by one.</p><div class=\"controls\"><label>Weight <select id=\"weight\">{}"
             "</select></label></div></div>\n",
             format, weight_options_html(study.analysis)) +
         titled(
             "By magnitude of weight and update",
             fmt::format("Each cell is coloured by the share lost, faint where updates are few. "
                         "<span class=\"key advised\">the rule of {}</span> <span class=\"key "
                         "now\">at and below it an update is zero</span>.{}",
                         rule,
                         window.left_out > 0
                             ? fmt::format(" Not drawn: {}, of weights that are zero or far out.",
                                           answer::plural(window.left_out, "update"))
                             : ""),
             "update-map", kByWeight) +
         "<div class=\"pair\">" +
         titled("Size beside the weight", "The lost part is coloured." + far_out(sum.table, target),
                "update-ratios", kByWeight) +
         titled("Error of what is applied",
                "What a weight moves by, against what it should move by.", "update-errors",
                kByWeight) +
         "</div>\n" +
         titled("Weight by weight",
                sum.weights > charts::kBarsDrawn
                    ? fmt::format("The {} weights that lose most, of {}.", charts::kBarsDrawn,
                                  sum.weights)
                    : "Largest share lost first.",
                "outcomes");
}

std::string updates_section(const Study& study) {
  const answer::UpdateSum sum = answer::all_updates(study.analysis);
  if (sum.weights == 0) return "";
  const UpdateCounts& counts = sum.table.counts;
  return section(answer::name_of(Evidence::updates), "Weight updates that get lost",
                 fmt::format("{} of {} lost in pure {}",
                             answer::share_text(counts.half.lost(), counts.updates()),
                             answer::plural(counts.updates(), "update"),
                             answer::people_say(study.analysis.target.name)),
                 updates_charts(study, sum) + updates_html(study.analysis));
}

/// Of logs without counts.
std::string peaks_section(const Study& study) {
  const std::string body = peaks_html(study);
  if (body.empty()) return "";
  const auto tensors = study.peaks.size();
  return section("peaks", "Largest magnitudes",
                 answer::plural(tensors, "tensor") + " without counts", body);
}

/// Of logs of other tools that tell the loss scale or skipped steps.
std::string timeline_section(const Study& study) {
  const auto words = answer::timeline_words(study);
  if (words.empty()) return "";
  return section("timeline", "History of the loss scale", words.front().lines.front(),
                 timeline_html(study));
}

std::string overflow_section(const Study& study) {
  const auto& headroom = study.overflow.headroom;
  const auto& events = study.overflow.events;
  if (headroom.empty() && events.empty()) return "";
  std::string digest = events.empty() ? "no event" : answer::plural(events.size(), "event");
  std::string body = events_html(study);
  if (!headroom.empty()) {
    const Room least = rooms_to_use(study).front();
    const std::string scale = room_scale_text(study);
    digest += fmt::format("; least headroom {}{:.1f} binades at {}",
                          least.headroom->censored ? "at most " : "", least.least, scale);
    body += titled("Headroom below overflow",
                   fmt::format(
                       "Binades between the largest magnitude and overflow, of gradients at {}.",
                       scale),
                   "rooms") +
            titled("Over the steps",
                   "The tensors with the least headroom. Growth: by the trend over the recorded "
                   "steps.",
                   "trends") +
            headroom_html(study);
  }
  return section(answer::name_of(Evidence::overflow), "Overflow and headroom", digest, body);
}

std::string policies_section(const Study& study) {
  if (study.policies.empty() && study.not_replayed.empty()) return "";
  std::string charts;
  if (!study.policies.empty()) {
    charts = titled("Loss scale over the steps",
                    "Each line is a policy, or several that did the same. Marks are steps it would "
                    "have skipped. Point at one for exact numbers.",
                    "policy-scales") +
             titled("Gradients flushed to zero under each",
                    "Mean over the recorded steps that have tables, least first: solid is surely "
                    "flushed, paler and dashed may be. The dot is the worst step, at most.",
                    "policy-flushed");
  }
  return section(answer::name_of(Evidence::policies), "Loss-scaling policies, replayed",
                 policies_digest(study),
                 policies_answer_html(study) + charts + policies_html(study));
}

std::string formats_section(const Study& study) {
  const answer::FitSums sums = answer::fit_sums(study.analysis);
  const std::string table = formats_html(study.analysis);
  if (table.empty()) return "";
  return section(
      answer::name_of(Evidence::formats), "Which formats fit",
      fmt::format(
          "{} of {} fit 8 bits{}", answer::count_text(sums.eight_bits),
          answer::plural(sums.tensors, "tensor"),
          sums.nonfinite == 0
              ? ""
              : fmt::format("; {} NaN or infinity",
                            sums.nonfinite == 1 ? "1 holds"
                                                : answer::count_text(sums.nonfinite) + " hold")),
      "<p class=\"note\">" + answer::html_escape(answer::fit_rule_text(study.enough_db)) +
          " That is as the values are, or at a power of two of the tensor's own (<em>at 2^k</em>). "
          "Beside it stands the ratio there; ~ marks an estimate from the histogram. NaN and "
          "infinities are left out: no format cures them. " +
          answer::left_out_text(study.analysis) + "</p>\n" +
          titled("Narrowest format by role", "", "fits") + table);
}

std::string advice_section(const Study& study, const answer::Answer& answer) {
  const std::string body = tables_html(answer, Evidence::advice);
  if (body.empty()) return "";
  std::string digest;
  const auto tell = [&](bool is, const std::string& what) {
    if (is) digest += (digest.empty() ? "" : "; ") + what;
  };
  const auto& advice = study.advice;
  tell(!advice.per_layer.empty(), answer::plural(advice.per_layer.size(), "layer") + " apart");
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
  add(Evidence::timeline, timeline_section(study));
  add(Evidence::updates, updates_section(study));
  add(Evidence::overflow, overflow_section(study));
  add(Evidence::policies, policies_section(study));
  add(Evidence::formats, formats_section(study));
  add(Evidence::advice, advice_section(study, answer));
  return all;
}

}  // namespace halfscope::reports::page
