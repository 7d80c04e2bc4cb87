// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/policies_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "halfscope/log/error.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;

namespace {

Cell lost_cell(const Trace& trace, const StepSeries& series) {
  return {lost_text(trace, series, narrow_range_text), trace.lost_share()};
}

Cell skipped_cell(const Trace& trace) {
  const std::size_t steps =
      trace.skipped.size() + trace.applied_nonfinite.size() + trace.unknown.size();
  return {skipped_text(trace), static_cast<double>(steps), why_text(trace)};
}

Cell share_cell(const std::optional<std::pair<double, double>>& share, std::string more = "") {
  if (!share) return {"-", -1, "", true};
  return {flushed_text(share, narrow_range_text), share->second, std::move(more)};
}

/// Sorts by log2 of the final scale: infinity is the largest key, 0 the smallest.
Cell end_cell(const Trace& trace, const StepSeries& series) {
  constexpr double kBeyond = 1e4;
  const double log2 = std::log2(trace.final_scale);
  const double key = std::isfinite(log2) ? log2 : trace.final_scale > 0 ? kBeyond : -kBeyond;
  return {end_text(trace, series), key, trace.error ? trace.error->message : ""};
}

Row row_of(std::string names, const Trace& trace, const StepSeries& series) {
  return {{{std::move(names)},
           lost_cell(trace, series),
           skipped_cell(trace),
           share_cell(trace.mean_flushed),
           share_cell(trace.worst_flushed,
                      trace.worst_flushed ? "at step " + step_text(trace.worst_step) : ""),
           {scales_text(trace)},
           end_cell(trace, series)}};
}

/// For example "torch, apex, keras2".
std::string names_of(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  std::vector<std::string> names;
  for (const std::size_t i : group) names.push_back(code(trace_name(study.traces[i])));
  return fmt::format("{}", fmt::join(names, ", "));
}

Table policies_table(const PolicyStudy& study) {
  Table table{Evidence::policies, "Loss-scaling policies"};
  table.whole = true;
  table.headings = {"policy",         "lost",       "steps skipped", "flushed, mean",
                    "flushed, worst", "loss scale", "at the end"};
  for (const auto& [name, trace] : references(study)) {
    table.rows.push_back(row_of(name, *trace, study.series));
    table.rows.back().marked = true;
  }
  for (const auto& group : study.groups) {
    const Trace& trace = study.traces[group.front()];
    if (!trace.unavailable.empty()) continue;
    table.rows.push_back(row_of(names_of(study, group), trace, study.series));
  }
  return table;
}

std::string tables_note(const StepSeries& series) {
  if (series.flushed.empty()) return "No step has histograms: what is flushed is unknown.";
  return fmt::format("Flushed shares are means over {}; over all values together they differ.",
                     series.flushed.size() == 1 ? "the one step with histograms"
                                                : fmt::format("the {} steps with histograms",
                                                              count_text(series.flushed.size())));
}

/// Returns the sentences that explain the table.
std::vector<std::string> notes(const PolicyStudy& study) {
  const auto any = [&](const auto& is) { return std::ranges::any_of(study.traces, is); };
  std::vector<std::string> out = {
      fmt::format(
          "The policies have their frameworks' settings. First {}, then all by the share of "
          "gradient values that they lose, least first.",
          gives_settings(study) ? "come the run itself and the recommended settings"
                                : "comes the run itself"),
      "A skipped step loses all its values. From the step on at which training ends, or a weight "
      "becomes NaN or infinite, all values are lost. Other steps lose what is flushed to zero.",
      tables_note(study.series),
      "Gradients are taken as recorded: what a policy does to the weights is not simulated."};
  if (any([](const Trace& trace) { return !trace.unknown.empty(); })) {
    out.push_back(unknown_steps_text());
  }
  if (any([](const Trace& trace) { return !trace.applied_nonfinite.empty(); })) {
    out.emplace_back(
        "Spoiled: the policy applies NaN or infinity to the weights instead of skipping the step.");
  }
  for (const Trace& trace : study.traces) {
    if (trace.unavailable.empty()) continue;
    out.push_back(fmt::format("{} is left out: {}.", code(trace_name(trace)),
                              log::printable(trace.unavailable)));
  }
  return out;
}

/// Returns the value of PitfallWords::concerns.
bool concerns(const analyzers::replay::Pitfall& pitfall, const PolicyStudy& study, bool asked) {
  return asked || pitfall.policy == "recorded" ||
         (study.tuned && pitfall.policy == study.tuned->name);
}

std::string policy_of(const analyzers::replay::Pitfall& pitfall, const PolicyStudy& study) {
  if (pitfall.policy != "recorded") return pitfall.policy;
  return study.series.from_magnitudes ? "this series" : "the run itself";
}

}  // namespace

std::string policies_heading(const PolicyStudy& study) {
  const StepSeries& s = study.series;
  std::string out = fmt::format("{}: {}", log::printable(s.log), plural(s.steps.size(), "step"));
  if (s.from_magnitudes || s.steps.empty()) return out;
  out += fmt::format(", {} to {}", step_text(s.steps.front()), step_text(s.steps.back()));
  return out + (s.flushed.empty()
                    ? ", none with histograms"
                    : fmt::format(", {} with histograms", count_text(s.flushed.size())));
}

Section policies_section(const PolicyStudy& study) {
  return {gives_settings(study) ? "All policies, beside the run itself and the recommended settings"
                                : "All policies, beside the run itself",
          notes(study),
          {policies_table(study)}};
}

std::string policies_digest(const analyzers::Study& study) {
  if (study.policies.empty()) return "not replayed";
  const PolicyStudy& first = study.policies.front();
  const std::size_t policies = first.traces.size();
  std::string out =
      (policies == 1 ? "1 policy" : fmt::format("{} policies", count_text(policies))) + " over " +
      plural(first.series.steps.size(), "step");
  if (!first.recorded) return out;
  out += fmt::format("; the run itself skipped {}", skips_text(*first.recorded));
  const std::size_t spoiled = first.recorded->applied_nonfinite.size();
  return spoiled == 0 ? out : out + fmt::format(" and spoiled {}", count_text(spoiled));
}

std::vector<PitfallWords> pitfalls(const PolicyStudy& study, bool asked) {
  std::vector<PitfallWords> out;
  for (const analyzers::replay::Pitfall& pitfall : study.pitfalls) {
    const bool first = concerns(pitfall, study, asked);
    const std::string name = policy_of(pitfall, study), text = pitfall.text();
    const auto same = std::ranges::find_if(out, [&](const PitfallWords& words) {
      return words.text == text && words.concerns == first;
    });
    if (same == out.end()) {
      out.push_back({{name}, text, first});
    } else if (std::ranges::find(same->names, name) == same->names.end()) {
      same->names.push_back(name);
    }
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const PitfallWords& words) { return words.concerns; });
  return out;
}

std::string other_pitfalls_text(const std::vector<PitfallWords>& pitfalls) {
  std::set<std::string> names;
  for (const PitfallWords& words : pitfalls) {
    if (!words.concerns) names.insert(words.names.begin(), words.names.end());
  }
  if (names.empty()) return "";
  return fmt::format("Pitfalls of other policies: {}. {} shows one, {} all.",
                     fmt::join(names, ", "), code("--policy NAME"), code("--json FILE"));
}

}  // namespace halfscope::reports::answer
