// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>

#include "analyzers/overflow/overflow_cause.hpp"
#include "analyzers/overflow/overflow_leads.hpp"
#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

using underflow::Analysis;
using underflow::LogSteps;

namespace {

OverflowEvent event_of(const LogView& view, const Run& run) {
  const Mark& mark = run.first();
  OverflowEvent event;
  event.log = view.log;
  event.what_if = run.kind != Kind::recorded;
  event.step = run.first_step();
  event.last_step = run.last_step();
  event.role = mark.role;
  event.from_scalars = !mark.tensor;
  event.tensor = std::string(log::name_of(mark.role));
  if (mark.tensor) {
    const underflow::TensorFindings& tensor = view.tensor(*mark.tensor);
    const Glimpse glimpse = glimpse_of(tensor, *underflow::find_step(tensor, event.step));
    event.tensor = tensor.name;
    event.nan = glimpse.nan;
    event.inf = glimpse.inf;
    event.overflow = glimpse.overflow;
  }
  event.loss_scale = scale_of(view, run);
  const Judgement judgement = event.what_if ? judge_what_if(view, run) : judge_recorded(view, run);
  event.cause = judgement.cause;
  event.why = judgement.why;
  event.safe_log2 = judgement.safe_log2;
  event.estimated = judgement.estimated;
  event.at_every_scale = judgement.at_every_scale;
  event.maybe_rounded = judgement.maybe_rounded;
  event.leads = find_leads(view, run);
  return event;
}

/// The recorded steps of events of a kind.
LogSteps steps_of(const Analysis& analysis, const std::vector<OverflowEvent>& events,
                  bool OverflowEvent::*is) {
  LogSteps steps;
  for (const OverflowEvent& event : events) {
    if (!(event.*is)) continue;
    const auto add = [&](const std::string& log, std::int64_t step) {
      if (log == event.log && step >= event.step && step <= event.last_step) {
        steps.emplace(log, step);
      }
    };
    for (const underflow::TensorFindings& t : analysis.tensors) {
      for (const underflow::StepFindings& step : t.per_step) add(t.log, step.step);
    }
    for (const auto& [log, scalars] : analysis.scalars) add(log, scalars.step);
  }
  return steps;
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::by_scale: return "by_scale";
    case Cause::at_scale_1: return "at_scale_1";
    case Cause::nan_in_model: return "nan_in_model";
    case Cause::undetermined: return "undetermined";
  }
  return "undetermined";
}

OverflowFindings find_overflow(const Analysis& analysis) {
  OverflowFindings findings;
  for (const std::string& log : analysis.logs) {
    const LogView view(analysis, log);
    const std::size_t begin = findings.events.size();
    for (const Kind kind : {Kind::recorded, Kind::what_if_forward, Kind::what_if_gradient}) {
      for (const Run& run : find_runs(view, kind)) findings.events.push_back(event_of(view, run));
    }
    std::stable_sort(
        findings.events.begin() + static_cast<std::ptrdiff_t>(begin), findings.events.end(),
        [](const OverflowEvent& a, const OverflowEvent& b) { return a.step < b.step; });
  }
  findings.headroom = find_headroom(analysis, steps_at_every_scale(analysis, findings.events));
  std::stable_sort(findings.headroom.begin(), findings.headroom.end(),
                   [](const Headroom& a, const Headroom& b) { return a.least < b.least; });
  return findings;
}

LogSteps steps_at_every_scale(const Analysis& analysis, const std::vector<OverflowEvent>& events) {
  return steps_of(analysis, events, &OverflowEvent::at_every_scale);
}

LogSteps steps_maybe_rounded(const Analysis& analysis, const std::vector<OverflowEvent>& events) {
  return steps_of(analysis, events, &OverflowEvent::maybe_rounded);
}

}  // namespace halfscope::analyzers::overflow
