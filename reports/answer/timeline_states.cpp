// SPDX-License-Identifier: Apache-2.0
// Findings on how runs end, on restarts of a scaler, and on the state of a loss scale.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer {

using analyzers::Findings;
using analyzers::frames::Tool;
using analyzers::overflow::BrokenEnd;
using analyzers::scale_history::RunState;
using analyzers::scale_history::ScaleJump;
using analyzers::scale_history::ScaleSettings;
using analyzers::scale_history::TimelineFacts;

namespace {

/// Returns the value of the scale, or its first and last value.
std::string place_text(const TimelineFacts& facts) {
  if (facts.settings) return "it settled at " + scale_name(facts.settings->init);
  if (!facts.scale_first) return "";
  if (facts.changes.empty()) {
    return fmt::format("it is {} wherever the log shows it", scale_name(*facts.scale_first));
  }
  return fmt::format("it went from {} to {}", scale_name(*facts.scale_first),
                     scale_name(*facts.scale_last));
}

std::string skips_text(const TimelineFacts& facts) {
  if (!facts.skips_told) {
    return facts.halvings.low == 0   ? "no line shows a fall"
           : facts.halvings.low == 1 ? "it was halved once"
                                     : fmt::format("it was halved {} times", facts.halvings.low);
  }
  if (facts.skipped_in_all.high > 0) return share_of_steps(facts);
  return facts.attempts ? fmt::format("none of the steps {} to {} was skipped", facts.first_attempt,
                                      facts.last_attempt)
                        : "no step was skipped";
}

std::string clean_steps(const Interval& window) {
  return fmt::format("{} clean step{}{}", window.high, window.high == 1 ? "" : "s",
                     window.exact() ? "" : " at the most");
}

/// Returns how many steps each growth of the scale costs, and a longer interval if one is better.
std::string growth_text(const ScaleSettings& settings) {
  if (!settings.window) return "";
  const std::string steps =
      settings.hysteresis == 1 ? "a step" : fmt::format("{} steps", settings.hysteresis);
  const std::string grows = fmt::format("The scale doubles after {}, which costs {} each time",
                                        clean_steps(*settings.window), steps);
  return settings.longer ? fmt::format("{}: let it double after {}.", grows, *settings.longer)
                         : grows + ".";
}

/// Returns how often the scale may have fallen between lines. Empty if the lines show all falls.
std::string unseen_text(const TimelineFacts& facts) {
  const bool all_told = facts.skips_told || facts.halvings.exact();
  if (all_told || facts.changes.empty() || !facts.attempts) return "";
  return fmt::format("Between lines it may have grown and fallen unseen: {}.",
                     halvings_text(facts));
}

Finding normal_finding(const TimelineFacts& facts) {
  const std::string place = place_text(facts);
  const bool constant = facts.scale_first && facts.changes.empty();
  const std::string skips = constant && !facts.skips_told ? "" : skips_text(facts);
  const bool numbered = facts.numbered && facts.skipped_in_all.high > 0;
  const std::string unseen = unseen_text(facts);
  const std::string growth = facts.settings ? growth_text(*facts.settings) : "";
  return {Severity::note,
          fmt::format("The loss scale is normal: {}{}{}{}.", place,
                      place.empty() || skips.empty() ? "" : ", and ", skips,
                      numbered ? ", and it grew again between them" : ""),
          unseen + (unseen.empty() || growth.empty() ? "" : " ") + growth};
}

std::string why_unknown(const TimelineFacts& facts) {
  if (!facts.scale_first && !facts.skips_told) {
    return "it shows neither a loss scale nor skipped steps";
  }
  if (facts.scale_most == 0 && facts.skipped_in_all.high == 0) {
    return "it is 0 throughout, as a setting may be and no scale in use is";
  }
  if (facts.burst) {
    return fmt::format("{}, {} of them from step {} to {}, and no line tells how far it fell there",
                       share_of_steps(facts), facts.burst->count.low, facts.burst->first,
                       *facts.burst->last);
  }
  if (!facts.skips_told) return share_of_steps(facts);
  if (!facts.attempts) return share_of_steps(facts) + "; it does not say of how many";
  return share_of_steps(facts) + (facts.skipped_in_all.exact() ? ", too few steps to judge"
                                                               : ", a range too wide to judge");
}

std::string jump_text(const ScaleJump& jump) {
  const Interval steps = jump.lost.value_or(Interval());
  const std::string again =
      jump.times == 1 ? "" : fmt::format(", the first of {} such jumps", jump.times);
  const std::string lost =
      steps.high == 0 ? ""
                      : fmt::format(", and {} {} lost until it was back", count_text(steps),
                                    steps.high == 1 ? "step was" : "steps were");
  return fmt::format("The loss scale jumped from {} to {}{} by step {}{}{}.", scale_name(jump.from),
                     scale_name(jump.to), jump.to_start ? ", where the run began," : "", *jump.by,
                     again, lost);
}

/// Returns how a framework saves and loads its scaler's state. Empty if that is unknown.
std::string_view state_of_scaler(Tool tool) {
  switch (tool) {
    case Tool::megatron:
      return ". Megatron-LM has it in the optimizer's state: use neither --no-save-optim nor "
             "--no-load-optim";
    case Tool::apex: return " (amp.state_dict())";
    case Tool::other:
    case Tool::tensorboard: return " (scaler.state_dict() in PyTorch)";
    default: return "";
  }
}

/// Returns that the learning-rate schedule advanced at skipped steps. Empty if it did not.
std::optional<Finding> schedule_finding(const TimelineFacts& facts, Tool tool) {
  if (facts.schedule_ahead == 0) return {};
  const bool of_torch = tool != Tool::mindspore && tool != Tool::paddle;
  const std::string ahead = count_text(facts.schedule_ahead);
  return Finding{
      Severity::note,
      fmt::format("The learning-rate schedule went on at {} skipped {}, without an update: it is "
                  "{} ahead.",
                  facts.schedule_ahead == facts.schedule_known
                      ? ahead
                      : fmt::format("{} of {}", ahead, count_text(facts.schedule_known)),
                  facts.schedule_known == 1 ? "step" : "steps",
                  plural(facts.schedule_ahead, "step")),
      fmt::format("{}; the same holds for a moving average of the weights.",
                  of_torch ? "Call scheduler.step() after an applied update alone, where "
                             "scaler.get_scale() has not fallen"
                           : "Let the schedule count applied updates alone")};
}

Finding static_scale_finding(const TimelineFacts& facts) {
  const analyzers::frames::SkippedSteps& skips = *facts.in_vain;
  const std::string scale = scale_name(*facts.scale_last);
  const std::int64_t last = skips.last.value_or(facts.last_attempt);  // a run log records each step
  return {Severity::breaks,
          facts.all_in_vain()
              ? fmt::format("Every step from {} to {} was skipped, all {}, at loss scale {}.",
                            skips.first, last, count_text(skips.count), scale)
              : fmt::format("{} of the steps {} to {} were skipped, at loss scale {}.",
                            count_text(skips.count), skips.first, last, scale),
          "The scale never changed, and a smaller one may help: run again with a dynamic loss "
          "scale, which falls until steps are applied."};
}

/// Returns the findings on the scalars of one run log.
std::vector<Finding> of_run_log(const TimelineFacts& facts) {
  if (facts.skips_at_static_scale() && facts.nonfinite.empty())
    return {static_scale_finding(facts)};
  std::vector<Finding> all = scale_alarms(facts, Tool::other);
  for (const auto& more : {schedule_finding(facts, Tool::other), collapse_finding(facts, false)}) {
    if (more) all.push_back(*more);
  }
  return all;
}

/// Returns the findings on the scalars of another tool's log, without a collapse.
std::vector<Finding> of_foreign_log(const TimelineFacts& facts, const Findings& found) {
  std::vector<Finding> all = scale_alarms(facts, found.tool);
  const bool scalars_alone = found.analysis.tensors().empty() && found.peaks.empty();
  if (scalars_alone && all.empty() && facts.collapse() == nullptr) {
    all.push_back(state_finding(facts));
  }
  if (const auto schedule = schedule_finding(facts, found.tool)) all.push_back(*schedule);
  return all;
}

std::string_view values_of(const BrokenEnd& end) {
  if (!end.inf) return "NaN";
  return end.nan ? "NaN or infinities" : "infinities";
}

std::string where_text(const BrokenEnd& end) {
  if (end.source.empty()) {
    return "look for the first NaN or infinity in the model, the data or the learning rate.";
  }
  return fmt::format(
      "{} is the first with finite inputs and NaN or infinite outputs, at step {}. Look there: at "
      "its inputs, its weights and the precision that it computes in.",
      code(end.source), end.first);
}

Finding broken_end_finding(const BrokenEnd& end) {
  const std::string tensors = end.other_tensors == 0
                                  ? code(end.tensor) + " holds"
                                  : fmt::format("{} and {} hold", code(end.tensor),
                                                plural(end.other_tensors, "other tensor"));
  const std::string when = end.steps == 1
                               ? fmt::format("at the last recorded step, {}", end.last)
                               : fmt::format("from step {} to the last, {}, at {} recorded steps",
                                             end.first, end.last, count_text(end.steps));
  return {Severity::breaks, fmt::format("{} {} {}.", tensors, values_of(end), when),
          "No loss scale in the log explains this: " + where_text(end)};
}

/// Returns the collapse of another tool's log, with its name if there are several logs.
std::optional<Finding> collapse_of(const TimelineFacts& facts, const Findings& found) {
  auto finding = collapse_finding(facts, true);
  if (finding && found.analysis.logs.size() > 1) {
    finding->title = log::printable(facts.log) + ": " + finding->title;
  }
  return finding;
}

/// Returns what is shown first: divisions by 0 in Adam, alarms of other tools' logs, then such
/// alarms for the scalars of run logs and for tensors that end in NaN or infinities.
std::vector<Finding> first_findings(const Findings& found) {
  std::vector<Finding> all = adam_divisions(found);
  const bool several = found.analysis.logs.size() > 1;
  for (const TimelineFacts& facts : found.timelines) {
    for (Finding& finding : of_foreign_log(facts, found)) {
      if (several) finding.title = log::printable(facts.log) + ": " + finding.title;
      all.push_back(std::move(finding));
    }
  }
  const auto add = [&](const std::string& log, Finding finding) {
    // Adam's division by 0 explains the NaN, so another cause is not suggested.
    if (finding.severity == Severity::breaks && found.verdict.adam_divides_by_zero.contains(log))
      finding.action.clear();
    finding.title = log_prefix(found.analysis, log) + finding.title;
    all.push_back(std::move(finding));
  };
  for (const TimelineFacts& facts : found.run_timelines) {
    for (Finding& finding : of_run_log(facts)) add(facts.log, std::move(finding));
  }
  for (const BrokenEnd& end : found.broken_ends) add(end.log, broken_end_finding(end));
  return all;
}

}  // namespace

Finding state_finding(const TimelineFacts& facts) {
  if (facts.state == RunState::normal) return normal_finding(facts);
  if (facts.state == RunState::not_needed) {
    return {Severity::note, "No loss scale is in use: it is 1 throughout, and no step was skipped.",
            "A run in BF16 or FP32 needs none. One in FP16 does: use a dynamic one."};
  }
  const bool no_scale = !facts.scale_first && !facts.skips_told;
  if (no_scale && facts.losses > 0 && facts.nonfinite.empty()) {
    return {
        Severity::note,
        fmt::format("The loss is finite at all {} printed {}. The log shows neither a loss scale "
                    "nor skipped steps.",
                    count_text(facts.losses), facts.numbered ? "entries" : "steps"),
        ""};
  }
  return {Severity::note,
          fmt::format("The log does not tell whether its loss scale is normal: {}.",
                      why_unknown(facts)),
          facts.settings ? growth_text(*facts.settings) : ""};
}

std::optional<Finding> jump_finding(const TimelineFacts& facts, Tool tool) {
  if (!facts.jump) return {};
  return Finding{Severity::warning, jump_text(*facts.jump),
                 fmt::format("A scaler that begins anew was not restored at resume: save and load "
                             "its state with the checkpoint{}.",
                             state_of_scaler(tool))};
}

void find_run_alarms(const analyzers::Study& study, std::vector<Finding>& to) {
  std::ranges::move(first_findings(study), std::back_inserter(to));
}

void find_collapses(const analyzers::Study& study, std::vector<Finding>& to) {
  for (const TimelineFacts& facts : study.timelines) {
    if (study.verdict.broken.contains(facts.log)) continue;  // find_run_alarms() says it
    if (auto finding = collapse_of(facts, study)) to.push_back(std::move(*finding));
  }
}

std::string first_text(const Findings& found) {
  std::string out;
  for (const Finding& finding : first_findings(found)) out += plain(text_of(finding)) + "\n";
  for (const TimelineFacts& facts : found.timelines) {
    if (const auto finding = collapse_of(facts, found)) out += text_of(*finding) + "\n";
  }
  return out;
}

}  // namespace halfscope::reports::answer
