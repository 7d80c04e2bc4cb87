// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>
#include <cmath>

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
  event.log = view.log.name;
  event.what_if = run.kind != Kind::recorded;
  event.step = run.first_step();
  event.last_step = run.last_step();
  event.to_the_end = event.last_step == view.last_step;
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
    const auto add = [&](std::int64_t step) {
      if (step >= event.step && step <= event.last_step) steps.emplace(event.log, step);
    };
    for (const underflow::LogFindings& log : analysis.logs) {
      if (log.name != event.log) continue;
      for (const underflow::TensorFindings& t : log.tensors) {
        for (const underflow::StepFindings& step : t.per_step) add(step.step);
      }
      for (const log::StepScalars& scalars : log.scalars) add(scalars.step);
    }
  }
  return steps;
}

/// Steps whose forward pass holds infinities or NaN.
void add_broken_forward(const underflow::LogFindings& log, LogSteps& steps) {
  for (const underflow::TensorFindings& t : log.tensors) {
    const bool forward = t.role == log::Role::weight || t.role == log::Role::master_weight ||
                         t.role == log::Role::activation;
    for (const underflow::StepFindings& step : t.per_step) {
      if (forward && underflow::nonfinite(step)) steps.emplace(log.name, step.step);
    }
  }
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss && !std::isfinite(*scalars.loss)) steps.emplace(log.name, scalars.step);
  }
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

bool OverflowFindings::bounds(const std::string& log, log::Role role, std::int64_t step,
                              bool in_fp16) const {
  const bool rounded = in_fp16 || maybe_rounded.contains({log, step});
  const bool curable =
      !at_every_scale.contains({log, step}) && !broken_forward.contains({log, step});
  return role != log::Role::loss && rounded && curable;
}

bool OverflowFindings::bounds(const underflow::TensorFindings& tensor,
                              const underflow::StepFindings& step) const {
  if (!tensor.counted) return tensor.computed_in_fp16();
  const bool in_fp16 =
      tensor.computed_in_fp16() || (!tensor.source_dtype && !tensor.computed_dtype);
  if (tensor.role != log::Role::loss) return bounds(tensor.log, tensor.role, step.step, in_fp16);
  const bool multiplied = !underflow::before_scaling(tensor, step);
  return multiplied && in_fp16 && !at_every_scale.contains({tensor.log, step.step});
}

const OverflowEvent* OverflowFindings::lasting() const {
  const auto found = std::ranges::find_if(events, [](const OverflowEvent& event) {
    const bool no_cure = event.cause == Cause::nan_in_model || event.cause == Cause::at_scale_1;
    return !event.what_if && no_cure && event.last_step > event.step && event.to_the_end;
  });
  return found == events.end() ? nullptr : &*found;
}

OverflowFindings find_overflow(const Analysis& analysis) {
  OverflowFindings findings;
  for (const underflow::LogFindings& log : analysis.logs) {
    const LogView view(analysis, log);
    const std::size_t begin = findings.events.size();
    for (const Kind kind : {Kind::recorded, Kind::what_if_forward, Kind::what_if_gradient}) {
      for (const Run& run : find_runs(view, kind)) findings.events.push_back(event_of(view, run));
    }
    std::stable_sort(
        findings.events.begin() + static_cast<std::ptrdiff_t>(begin), findings.events.end(),
        [](const OverflowEvent& a, const OverflowEvent& b) { return a.step < b.step; });
  }
  for (const underflow::LogFindings& log : analysis.logs) {
    add_broken_forward(log, findings.broken_forward);
  }
  findings.at_every_scale = steps_of(analysis, findings.events, &OverflowEvent::at_every_scale);
  findings.maybe_rounded = steps_of(analysis, findings.events, &OverflowEvent::maybe_rounded);
  findings.headroom = find_headroom(analysis, findings);
  std::stable_sort(findings.headroom.begin(), findings.headroom.end(),
                   [](const Headroom& a, const Headroom& b) { return a.least < b.least; });
  return findings;
}

}  // namespace halfscope::analyzers::overflow
