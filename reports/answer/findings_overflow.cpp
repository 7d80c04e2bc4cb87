// SPDX-License-Identifier: Apache-2.0
// Findings about infinities, NaN, and the room that is left.
#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;
using analyzers::overflow::Cause;
using analyzers::overflow::Headroom;
using analyzers::overflow::OverflowEvent;

namespace {

std::vector<const OverflowEvent*> events_of(const Study& study, Cause cause) {
  std::vector<const OverflowEvent*> out;
  for (const OverflowEvent& event : study.overflow.events) {
    if (event.cause == cause) out.push_back(&event);
  }
  return out;
}

std::string times(std::size_t events) {
  return events > 1 ? fmt::format(" ({} times in all)", events) : "";
}

std::string place(const OverflowEvent& event) {
  return fmt::format("{} at step {}", log::printable(event.tensor), event.step);
}

/// Recorded, or what the values would do in the format.
std::string verb(const OverflowEvent& event) {
  return event.what_if ? "would overflow" : "overflows";
}

std::string what(const OverflowEvent& event) {
  if (event.nan.low > 0) return "NaN";
  return event.inf.low > 0 ? "Infinity" : "Overflow";
}

void in_model(const Study& study, List& to) {
  const auto events = events_of(study, Cause::nan_in_model);
  if (events.empty()) return;
  to.push_back({Severity::serious,
                fmt::format("{} in the model: first in {}{}.", what(*events[0]), place(*events[0]),
                            times(events.size())),
                "No loss scale and no wider format helps. " + log::printable(events[0]->why),
                Evidence::overflow});
}

void at_scale_1(const Study& study, List& to) {
  const auto events = events_of(study, Cause::at_scale_1);
  const std::vector<std::string>& tensors = study.advice.overflow_without_cure;
  if (events.empty() && tensors.empty()) return;
  const std::string format = format_name(study.analysis);
  const std::string title =
      tensors.empty()
          ? fmt::format("{} {} {} without any loss scale{}.", place(*events[0]), verb(*events[0]),
                        format, times(events.size()))
          : fmt::format("{} {} {} without any loss scale: {}.", plural(tensors.size(), "tensor"),
                        tensors.size() == 1 ? "overflows" : "overflow", format,
                        some_names(tensors));
  // Gradients that are too large at scale 1 are held by a smaller one: that is what is recommended.
  const bool held = tensors.empty() && study.advice.static_log2.value_or(0) < 0;
  const std::string_view helps = held ? "No loss scale of 1 or more helps" : "No loss scale helps";
  to.push_back({Severity::serious, title,
                fmt::format("{}: keep what overflows in FP32 or bfloat16, or make the values "
                            "smaller.",
                            helps),
                Evidence::overflow});
}

void by_scale(const Study& study, List& to) {
  const auto events = events_of(study, Cause::by_scale);
  if (events.empty()) return;
  std::optional<int> safe;
  bool estimated = false;
  for (const OverflowEvent* event : events) {
    if (event->safe_log2) safe = std::min(*event->safe_log2, safe.value_or(*event->safe_log2));
    estimated = estimated || event->estimated;
  }
  const std::string_view held =
      estimated ? "At every such step a loss scale of at most {} would have held; how much less is "
                  "not known, since infinities hide how large the gradients were."
                : "A loss scale of {} would have held at every such step.";
  to.push_back({Severity::serious,
                fmt::format("The loss scale is too large: {} {}{}.", place(*events[0]),
                            verb(*events[0]), times(events.size())),
                safe ? fmt::format(fmt::runtime(held), power_text(*safe))
                     : "A smaller loss scale, or a dynamic one, avoids it.",
                Evidence::overflow});
}

void untold(const Study& study, List& to) {
  const auto events = events_of(study, Cause::undetermined);
  if (!events.empty()) {
    to.push_back({Severity::serious,
                  fmt::format("{} in {}{}; the log does not tell why.", what(*events[0]),
                              place(*events[0]), times(events.size())),
                  log::printable(events[0]->why), Evidence::overflow});
  } else if (study.overflow.events.empty() && !study.advice.nonfinite_steps.empty()) {
    const auto& steps = study.advice.nonfinite_steps;
    to.push_back({Severity::serious,
                  fmt::format("Gradients hold NaN or infinity at {}, first at step {}.",
                              plural(steps.size(), "step"), steps.front()),
                  "", Evidence::overflow});
  }
}

/// The asked scale itself may overflow where no event is told: values of a what-if.
void at_asked_scale(const Study& study, List& to) {
  if (study.analysis.loss_scale == 1 || !events_of(study, Cause::by_scale).empty()) return;
  Interval overflow(0);
  for (const auto& tensor : study.analysis.tensors()) {
    if (tensor.counted) overflow += tensor.counts.classes.overflow;
  }
  if (overflow.high == 0) return;
  to.push_back(
      {Severity::serious,
       fmt::format("At loss scale {}, {} gradient values overflow.",
                   scale_text(study.analysis.loss_scale), count_text(overflow)),
       study.advice.static_log2 ? "Use " + power_text(*study.advice.static_log2) + " instead." : "",
       Evidence::scales});
}

void growing(const Study& study, List& to) {
  const Headroom* soonest = nullptr;
  std::size_t all = 0;
  for (const Headroom& h : study.overflow.headroom) {
    if (h.least <= 0 || !h.overflow_expected_at) continue;
    ++all;
    if (!soonest || *h.overflow_expected_at < *soonest->overflow_expected_at) soonest = &h;
  }
  if (!soonest) return;
  to.push_back(
      {Severity::warning,
       fmt::format(
           "{} grew by {:.2g} binades over steps {} to {} and would overflow near step {}{}.",
           log::printable(study.analysis.tensors()[soonest->tensor].name),
           soonest->growth().value_or(0), soonest->trend_from, soonest->trend_to,
           count_text(static_cast<std::uint64_t>(
               std::max<std::int64_t>(0, *soonest->overflow_expected_at))),
           all > 1 ? fmt::format("; {} more grow too", all - 1) : ""),
       "It may level off: record later steps, and lower the scale or keep it in FP32 if not.",
       Evidence::overflow});
}

}  // namespace

void alarms(const Study& study, List& to) {
  for (const AlarmWords& alarm : first_words(study)) {
    const Severity least = alarm.minor ? Severity::note : Severity::warning;
    to.push_back(
        {alarm.lasts ? Severity::serious : least, alarm.what, alarm.action, Evidence::overflow});
  }
}

void collapse(const Study& study, List& to) {
  const auto words = collapse_words(study);
  if (!words) return;
  to.push_back(
      {Severity::serious, words->what,
       words->driver +
           " A scaler lowers the scale after every step with an infinity or NaN. Where it ends "
           "at 1 or less and goes on, lowering it does not cure them: look for them in the "
           "model.",
       Evidence::overflow});
}

void overflow(const Study& study, List& to) {
  in_model(study, to);
  at_scale_1(study, to);
  by_scale(study, to);
  at_asked_scale(study, to);
  untold(study, to);
}

void thin_room(const Study& study, List& to) {
  std::vector<std::string> thin;
  double least = 1;
  for (const Headroom& h : study.overflow.headroom) {
    if (h.least <= 0 || h.least >= 1) continue;
    thin.push_back(study.analysis.tensors()[h.tensor].name);
    least = std::min(least, h.least);
  }
  if (!thin.empty()) {
    to.push_back(
        {Severity::warning,
         fmt::format("{} within one binade of overflow, at {:.2f} binades the nearest: {}.",
                     thin.size() == 1 ? "1 tensor comes" : plural(thin.size(), "tensor") + " come",
                     least, some_names(thin)),
         "One larger step overflows: leave more room, or keep them in FP32.", Evidence::overflow});
  }
  growing(study, to);
}

}  // namespace halfscope::reports::answer::found
