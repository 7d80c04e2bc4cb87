// SPDX-License-Identifier: Apache-2.0
// Sentences on a run whose log has only a loss scale and skipped steps.
#include <fmt/format.h>

#include <string>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::frames::Tool;
using analyzers::scale_history::RunState;
using analyzers::scale_history::ScaleJump;
using analyzers::scale_history::ScaleSettings;
using analyzers::scale_history::TimelineFacts;

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

AlarmWords normal_words(const TimelineFacts& facts) {
  const std::string place = place_text(facts);
  const bool constant = facts.scale_first && facts.changes.empty();
  const std::string skips = constant && !facts.skips_told ? "" : skips_text(facts);
  const bool numbered = facts.numbered && facts.skipped_in_all.high > 0;
  const std::string unseen = unseen_text(facts);
  const std::string growth = facts.settings ? growth_text(*facts.settings) : "";
  return {fmt::format("The loss scale is normal: {}{}{}{}.", place,
                      place.empty() || skips.empty() ? "" : ", and ", skips,
                      numbered ? ", and it grew again between them" : ""),
          unseen + (unseen.empty() || growth.empty() ? "" : " ") + growth, false, true};
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

}  // namespace

AlarmWords state_words(const TimelineFacts& facts) {
  if (facts.state == RunState::normal) return normal_words(facts);
  if (facts.state == RunState::not_needed) {
    return {"No loss scale is in use: it is 1 throughout, and no step was skipped.",
            "A run in BF16 or FP32 needs none. One in FP16 does: use a dynamic one.", false, true};
  }
  const bool no_scale = !facts.scale_first && !facts.skips_told;
  if (no_scale && facts.losses > 0 && facts.nonfinite.empty()) {
    return {
        fmt::format("The loss is finite at all {} printed {}. The log shows neither a loss scale "
                    "nor skipped steps.",
                    count_text(facts.losses), facts.numbered ? "entries" : "steps"),
        "", false, true};
  }
  return {fmt::format("The log does not tell whether its loss scale is normal: {}.",
                      why_unknown(facts)),
          facts.settings ? growth_text(*facts.settings) : "", false, true};
}

AlarmWords jump_words(const TimelineFacts& facts, Tool tool) {
  if (!facts.jump) return {};
  return {jump_text(*facts.jump),
          fmt::format("A scaler that begins anew was not restored at resume: save and load its "
                      "state with the checkpoint{}.",
                      state_of_scaler(tool))};
}

AlarmWords schedule_words(const TimelineFacts& facts, Tool tool) {
  const bool of_torch = tool != Tool::mindspore && tool != Tool::paddle;
  const bool all = facts.schedule_ahead == facts.schedule_known;
  return {fmt::format(
              "The learning-rate schedule went on at {} skipped {}, without an update: it is "
              "{} ahead.",
              all ? count_text(facts.schedule_ahead)
                  : fmt::format("{} of {}", count_text(facts.schedule_ahead),
                                count_text(facts.schedule_known)),
              facts.schedule_known == 1 ? "step" : "steps", plural(facts.schedule_ahead, "step")),
          fmt::format("{}; the same holds for a moving average of the weights.",
                      of_torch ? "Call scheduler.step() after an applied update alone, where "
                                 "scaler.get_scale() has not fallen"
                               : "Let the schedule count applied updates alone"),
          false, true};
}

}  // namespace halfscope::reports::answer
