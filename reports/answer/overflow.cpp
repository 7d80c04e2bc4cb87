// SPDX-License-Identifier: Apache-2.0
// Findings on infinities, NaN, and the remaining headroom.
#include "reports/answer/overflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "halfscope/log/error.hpp"
#include "halfscope/number/convert.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

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
  return fmt::format("{} at step {}", code(event.tensor), event.step);
}

/// Returns "would overflow" if a finite recorded value overflows only in the target format.
std::string verb(const OverflowEvent& event) {
  return event.what_if ? "would overflow" : "overflows";
}

std::string what(const OverflowEvent& event) {
  if (event.nan.low > 0) return "NaN";
  return event.inf.low > 0 ? "Infinity" : "Overflow";
}

/// Returns true if the events are at many of the recorded steps. Single skipped steps are normal.
bool steps_hit(const Study& study, const std::vector<const OverflowEvent*>& events) {
  std::size_t recorded = 0;
  for (const auto& tensor : study.analysis.tensors()) {
    recorded = std::max(recorded, tensor.per_step.size());
  }
  return static_cast<double>(events.size()) >=
         study.advice.asked.serious_share * static_cast<double>(recorded);
}

/// Returns the first named tensor with NaN or infinities in logs without counts; null if none.
const analyzers::frames::StepPeak* first_nonfinite(const Study& study) {
  const analyzers::frames::StepPeak* first = nullptr;
  for (const auto& log : study.analysis.logs) {
    for (const analyzers::frames::StepPeak& peak : log.peaks) {
      const bool named = !std::isfinite(peak.max_abs) && !peak.tensor.empty();
      if (named && (first == nullptr || peak.step < first->step)) first = &peak;
    }
  }
  return first;
}

/// Returns the largest finite magnitude of the tensors of this name; empty if the format holds it.
std::optional<double> largest_beyond(const Study& study, const std::string& name) {
  const Format& format = study.analysis.target.format;
  const double limit = to_double(format, format.largest_finite());
  double most = limit;
  for (const auto& tensor : study.analysis.tensors()) {
    if (tensor.name == name) most = std::max(most, tensor.max_abs.value_or(0));
  }
  return most > limit ? std::optional(most) : std::nullopt;
}

}  // namespace

/// Adds events at scale 1. Tensors that are not gradients are findings of
/// find_overflow_without_cure().
void find_overflow_at_1(const Study& study, std::vector<Finding>& to) {
  const auto events = events_of(study, Cause::at_scale_1);
  if (events.empty()) return;
  // If gradients overflow at scale 1, the recommended scale is less than 1.
  const bool held = study.advice.static_log2.value_or(0) < 0;
  to.push_back({Severity::serious,
                fmt::format("{} {} {} without any loss scale{}.", place(*events[0]),
                            verb(*events[0]), format_name(study.analysis), times(events.size())),
                fmt::format("{}: keep what overflows in FP32 or bfloat16, or make the values "
                            "smaller.",
                            held ? "No loss scale of 1 or more helps" : "No loss scale helps")});
}

/// Adds a note on overflows by the growth of a dynamic scale, which are normal.
void find_growth_probes(const Study& study, std::vector<Finding>& to) {
  auto events = events_of(study, Cause::by_scale);
  std::erase_if(events, [](const OverflowEvent* event) { return !event->growth_probe; });
  if (events.empty()) return;
  to.push_back({Severity::note,
                fmt::format("The dynamic loss scale grows until gradients overflow: {}, first {}.",
                            events.size() == 1 ? "once" : fmt::format("{} times", events.size()),
                            place(*events[0])),
                "It skips the step and halves the scale: that is how it finds the limit."});
}

void find_overflow_by_scale(const Study& study, std::vector<Finding>& to) {
  auto events = events_of(study, Cause::by_scale);
  std::erase_if(events, &OverflowEvent::growth_probe);
  if (events.empty()) return;
  std::optional<int> safe;
  bool estimated = false;
  for (const OverflowEvent* event : events) {
    if (event->safe_log2) safe = std::min(*event->safe_log2, safe.value_or(*event->safe_log2));
    estimated = estimated || event->estimated;
  }
  const std::string_view held =
      estimated ? "At every such step a loss scale of at most {} would have held; how much less is "
                  "unknown, since infinities hide how large the gradients were."
                : "A loss scale of {} would have held at every such step.";
  to.push_back({steps_hit(study, events) ? Severity::serious : Severity::warning,
                fmt::format("The loss scale is too large: {} {}{}.", place(*events[0]),
                            verb(*events[0]), times(events.size())),
                safe ? fmt::format(fmt::runtime(held), power_text(*safe))
                     : "A smaller loss scale, or a dynamic one, avoids it."});
}

void find_unexplained(const Study& study, std::vector<Finding>& to) {
  if (study.analysis.tensors().empty() && !study.timelines.empty())
    return;  // find_run_alarms() says it
  auto events = events_of(study, Cause::undetermined);
  std::erase_if(events, [&](const OverflowEvent* event) {
    return std::ranges::any_of(study.broken_ends, [&](const auto& end) {
      return end.log == event->log && event->step >= end.first;  // find_run_alarms() says it
    });
  });
  if (!events.empty()) {
    to.push_back({Severity::serious,
                  fmt::format("{} in {}{}; the log does not show why.", what(*events[0]),
                              place(*events[0]), times(events.size())),
                  log::printable(events[0]->why)});
  } else if (study.overflow.events.empty() && !study.advice.nonfinite_steps.empty()) {
    const auto& steps = study.advice.nonfinite_steps;
    const auto* const first = first_nonfinite(study);
    to.push_back({Severity::serious,
                  fmt::format("{} NaN or infinity at {}, first {}at step {}.",
                              first ? "There is" : "Gradients hold", plural(steps.size(), "step"),
                              first ? "in " + code(first->tensor) + " " : "", steps.front()),
                  ""});
  }
}

/// Adds gradients that overflow at the requested loss scale, if no recorded event shows that.
void find_overflow_at_asked(const Study& study, std::vector<Finding>& to) {
  if (study.analysis.loss_scale == 1) return;
  Interval overflow(0);
  for (const auto& tensor : study.analysis.tensors()) {
    if (tensor.loss_scaled) overflow += tensor.counts.classes.overflow;
  }
  if (overflow.high == 0) return;
  to.push_back({Severity::serious,
                fmt::format("At loss scale {}, {} gradient values overflow.",
                            scale_text(study.analysis.loss_scale), count_text(overflow)),
                study.advice.static_log2
                    ? "Use " + power_text(*study.advice.static_log2) + " instead."
                    : ""});
}

void find_growing_tensor(const Study& study, std::vector<Finding>& to) {
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
           "{} grew by {:.2g} binades over steps {} to {} and would overflow near step {} at loss "
           "scale {}{}.",
           code(study.analysis.tensors()[soonest->tensor].name), soonest->growth().value_or(0),
           soonest->trend_from, soonest->trend_to,
           count_text(static_cast<std::uint64_t>(
               std::max<std::int64_t>(0, *soonest->overflow_expected_at))),
           scale_text(soonest->scale), all > 1 ? fmt::format("; {} more grow too", all - 1) : ""),
       "It may level off: record later steps, and lower the scale or keep it in FP32 if not."});
}

void find_thin_headroom(const Study& study, std::vector<Finding>& to) {
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
                     least, listed_code(thin, 3)),
         "One larger step overflows: leave more headroom, or keep them in FP32."});
  }
}

void find_lasting_failure(const Study& study, std::vector<Finding>& to) {
  const OverflowEvent* const end = study.overflow.lasting();
  const auto& model = study.advice.nan_in_model;
  // NaN in the model is always reported.
  if (end == nullptr || (model && model->step <= end->step)) return;
  to.push_back({Severity::breaks,
                fmt::format("From step {} to the last, {}, there are infinities or NaN that {}, "
                            "first in {}.",
                            end->step, end->last_step,
                            end->cause == Cause::at_scale_1 ? "no loss scale of 1 or more cures"
                                                            : "no loss scale cures",
                            code(end->tensor)),
                ""});
}

void find_nan_in_model(const Study& study, std::vector<Finding>& to) {
  const auto& found = study.advice.nan_in_model;
  if (!found) return;
  const auto event =
      std::ranges::find(study.overflow.events, Cause::nan_in_model, &OverflowEvent::cause);
  to.push_back(
      {Severity::breaks,
       fmt::format("{} in the model from step {}, first in {}.", found->nan ? "NaN" : "Infinity",
                   found->step, code(found->tensor)),
       "No loss scale and no wider format helps." +
           (event == study.overflow.events.end() ? "" : " " + log::printable(event->why))});
}

void find_overflow_without_cure(const Study& study, std::vector<Finding>& to) {
  const std::vector<std::string>& tensors = study.advice.overflow_without_cure;
  if (tensors.empty()) return;
  const bool one = tensors.size() == 1;
  // One number for several tensors would seem to be the same in all of them.
  const auto most = one ? largest_beyond(study, tensors.front()) : std::nullopt;
  to.push_back({Severity::breaks,
                fmt::format("{} {} too large for {}, and a loss scale does not change that.",
                            listed_code(tensors, 3),
                            most ? "reaches " + magnitude_text(*most) + "," : (one ? "is" : "are"),
                            format_name(study.analysis)),
                fmt::format("Keep {} in FP32 or bfloat16, or make the values smaller.",
                            one ? "it" : "them")});
}

}  // namespace halfscope::reports::answer
