// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/policies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "halfscope/log/error.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer {

using namespace analyzers;

using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;

namespace {

Cell lost_cell(const Trace& trace, const StepSeries& series) {
  return {lost_text(trace, series), trace.lost_share()};
}

Cell skipped_cell(const Trace& trace) {
  const std::size_t steps =
      trace.skipped.size() + trace.applied_nonfinite.size() + trace.unknown.size();
  return {skipped_text(trace), static_cast<double>(steps), why_text(trace)};
}

Cell share_cell(const std::optional<std::pair<double, double>>& share, std::string more = "") {
  if (!share) return {"-", -1, "", true};
  return {narrow_range_text(share->first, share->second), share->second, std::move(more)};
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
    out.emplace_back(
        "Two numbers of skipped steps: at the steps between them, the run overflowed at a larger "
        "scale, or not all gradients are recorded. It is unknown whether they overflow at this "
        "scale.");
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

/// Fewer lost steps than these limits are normal while a scale is found.
constexpr std::size_t kFewSteps = 3;
constexpr double kFewShare = 0.01;

/// Returns how many steps were skipped or spoiled by the scale, not by NaN in the model.
std::size_t lost_by_scale(const Trace& trace) {
  const auto model = static_cast<std::size_t>(trace.model_nan_skips + trace.model_nan_applied);
  const std::size_t lost = trace.skipped.size() + trace.applied_nonfinite.size();
  return lost - std::min(model, lost);
}

/// Returns lost_by_scale() plus the number of steps for which it is unknown.
std::size_t at_most(const Trace& trace) { return lost_by_scale(trace) + trace.unknown.size(); }

double flushed(const Trace& trace) { return trace.mean_flushed ? trace.mean_flushed->second : 0; }

/// Returns the settings that would have lost the fewest steps without flushing noticeably more, and
/// their name; null if none would have lost fewer than the run.
std::pair<std::string, const Trace*> better_than(const PolicyStudy& study, const Trace& run,
                                                 double negligible) {
  std::pair<std::string, const Trace*> best;
  const auto offer = [&](const std::string& name, const Trace& trace) {
    if (trace.error || flushed(trace) > flushed(run) + negligible) return;
    const Trace& known = best.second ? *best.second : run;
    if (lost_by_scale(trace) >= lost_by_scale(known) || at_most(trace) > at_most(run)) return;
    best = {name, &trace};
  };
  if (study.tuned) offer(study.tuned->text, study.tuned->trace);
  if (study.fixed) offer("A static scale of " + scales_text(*study.fixed), *study.fixed);
  return best;
}

/// Returns "none", "12" or "0 to 41".
std::string lost_text_of(const Trace& trace) {
  const Interval lost{lost_by_scale(trace), at_most(trace)};
  return lost.high == 0 ? "none" : count_text(lost);
}

void lost_needlessly(const PolicyStudy& study, const Trace& run,
                     const underflow::RecommendOptions& asked, std::vector<Finding>& to) {
  const auto [name, better] = better_than(study, run, asked.negligible_share);
  if (better == nullptr) return;
  const std::size_t lost = lost_by_scale(run), kept = lost - lost_by_scale(*better);
  const std::size_t surely = lost - std::min(lost, at_most(*better));
  const auto length = static_cast<double>(run.length);
  if (kept < kFewSteps || static_cast<double>(kept) < kFewShare * length) return;
  const bool serious =
      static_cast<double>(surely) >= asked.serious_share * length && surely > 2 * kFewSteps;
  to.push_back(
      {serious ? Severity::serious : Severity::warning,
       fmt::format("The run lost {} of {} to overflow by the loss scale, {}{} of them needlessly.",
                   count_text(lost), plural(run.length, "step"), surely == kept ? "" : "perhaps ",
                   count_text(kept)),
       fmt::format("{} would have lost {}{}.{}", name, lost_text_of(*better),
                   better->mean_flushed ? ", and flushed " +
                                              share_range_text(better->mean_flushed->first,
                                                               better->mean_flushed->second) +
                                              " of the gradient values"
                                        : "",
                   surely == kept ? "" : " The log does not show which scale these steps need.")});
}

/// Returns the number of consecutive skipped steps at the end of the run.
std::size_t skipped_at_end(const Trace& run, const StepSeries& series) {
  std::size_t n = 0;
  while (n < run.skipped.size() &&
         run.skipped[run.skipped.size() - 1 - n] == series.steps[series.steps.size() - 1 - n]) {
    ++n;
  }
  return n;
}

/// Returns a sentence on a scale that collapsed or became infinite; empty for other runs.
std::string astray(const Trace& run, const StepSeries& series) {
  constexpr std::size_t kMany = 10;
  // smaller scales flush gradients that are normal numbers at scale 1
  constexpr double kUseless = 0x1p-14;
  if (run.outcome == replay::TraceOutcome::zero) return "The run's loss scale collapsed to 0.";
  if (run.outcome == replay::TraceOutcome::infinity) {
    return "The run's loss scale grew to infinity, where it stays.";
  }
  const std::size_t skipped = skipped_at_end(run, series);
  const std::string scale = scale_text(run.final_scale);
  if (skipped >= kMany) {
    return fmt::format("The run skipped every one of its last {}, down to a loss scale of {}.",
                       plural(skipped, "step"), scale);
  }
  // A scale that never changed and lost nothing was chosen by the user.
  const bool moved = !run.scale.empty() && run.scale.front().second > run.final_scale;
  if (moved && !run.skipped.empty() && run.final_scale < kUseless) {
    return "The run's loss scale collapsed to " + scale + ".";
  }
  return "";
}

void collapsed(const Trace& run, const StepSeries& series, std::vector<Finding>& to) {
  const std::string where = astray(run, series);
  if (where.empty()) return;
  const bool model = run.model_nan_skips * 2 > run.skipped.size();
  to.push_back({Severity::serious, where,
                model ? "NaN or infinity is in the model itself: no loss scale cures it."
                      : "No step can be taken from there: start again at a smaller scale, with a "
                        "floor that the gradients can be scaled by."});
}

/// Adds a pitfall that occurred in the run itself. Pitfalls of other policies are advice.
void sprung(const replay::Pitfall& pitfall, std::vector<Finding>& to) {
  to.push_back({Severity::warning, log::printable(pitfall.what), log::printable(pitfall.rest)});
}

constexpr std::size_t kMostOfALog = 4;

bool starts_slowly(const Study& study) {
  const auto slow = [](const scale_history::TimelineFacts& facts) {
    return facts.slow_start.has_value();
  };
  return std::ranges::any_of(study.timelines, slow) ||
         std::ranges::any_of(study.run_timelines, slow);
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

void find_policy_faults(const Study& study, std::vector<Finding>& to) {
  const bool ended = !study.verdict.broken.empty();
  const bool said = ended || starts_slowly(study);  // find_run_alarms() says what was lost
  for (const PolicyStudy& replayed : study.policies) {
    const std::size_t before = to.size();
    if (replayed.recorded) {
      if (!ended || study.policies.size() > 1) collapsed(*replayed.recorded, replayed.series, to);
      if (!said) lost_needlessly(replayed, *replayed.recorded, study.advice.asked, to);
    }
    const bool told = ended || to.size() != before;
    for (const replay::Pitfall& pitfall : replayed.pitfalls) {
      if (pitfall.policy != "recorded" ||
          (told && pitfall.kind == replay::PitfallKind::nan_in_model))
        continue;
      if (to.size() - before < kMostOfALog) sprung(pitfall, to);
    }
  }
}

}  // namespace halfscope::reports::answer
