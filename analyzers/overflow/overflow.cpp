// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/overflow/overflow_cause.hpp"
#include "analyzers/overflow/overflow_evidence.hpp"
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
    const TensorState glimpse = glimpse_of(tensor, *tensor.per_step.find(event.step));
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
  event.growth_probe =
      !event.what_if && event.cause == Cause::by_scale && is_growth_probe(view, run);
  event.not_scale_related = judgement.not_scale_related;
  event.maybe_rounded = judgement.maybe_rounded;
  event.leads = find_leads(view, run);
  return event;
}

/// Returns the steps for which a log has tensors or scalars, ascending.
std::vector<std::int64_t> recorded_steps(const underflow::LogFindings& log) {
  std::vector<std::int64_t> steps;
  for (const underflow::TensorFindings& t : log.tensors) {
    for (const underflow::StepFindings& step : t.per_step) steps.push_back(step.step);
  }
  for (const log::StepScalars& scalars : log.scalars) steps.push_back(scalars.step);
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

/// Adds the recorded steps of the log's events that no scale cured, or that FP16 may have made.
void add_steps(const underflow::LogFindings& log, OverflowFindings& to) {
  std::vector<std::int64_t> steps;
  for (const OverflowEvent& event : to.events) {
    if (event.log != log.name || !(event.not_scale_related || event.maybe_rounded)) continue;
    if (steps.empty()) steps = recorded_steps(log);
    const auto end = std::ranges::upper_bound(steps, event.last_step);
    for (auto at = std::ranges::lower_bound(steps, event.step); at != end; ++at) {
      if (event.not_scale_related) to.not_scale_related.emplace(log.name, *at);
      if (event.maybe_rounded) to.maybe_rounded.emplace(log.name, *at);
    }
  }
}

/// Adds the steps of a run whose first NaN or infinity is in a gradient that was not computed in
/// FP16, if the event's cause is NaN in the model.
void add_explained(const LogView& view, const Run& run, const OverflowEvent& event,
                   LogSteps& steps) {
  if (event.what_if || event.cause != Cause::nan_in_model) return;
  for (const auto& [step, mark] : run.steps) {
    const bool wide = mark.tensor && !underflow::may_have_fp16_range(view.tensor(*mark.tensor));
    if (wide && is_gradient(mark.role)) steps.emplace(view.log.name, step);
  }
}

/// Adds the steps whose forward pass has infinities or NaN.
void add_broken_forward(const underflow::LogFindings& log, LogSteps& steps) {
  for (const underflow::TensorFindings& t : log.tensors) {
    for (const underflow::StepFindings& step : t.per_step) {
      const underflow::Counts& counts = step.counts;
      if (underflow::breaks_forward(t.role, step.scale, counts.nan, counts.inf)) {
        steps.emplace(log.name, step.step);
      }
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
                              bool in_fp16, bool nan) const {
  const bool rounded = in_fp16 || maybe_rounded.contains({log, step});
  const bool curable =
      !not_scale_related.contains({log, step}) && !broken_forward.contains({log, step});
  const bool explained = nan && nan_explained.contains({log, step});
  return role != log::Role::loss && rounded && curable && !explained;
}

bool OverflowFindings::nan_bounds(const underflow::TensorFindings& tensor,
                                  const underflow::StepFindings& step) const {
  return is_gradient(tensor.role) && step.counts.nan.low != 0 &&
         bounds(*tensor.log, tensor.role, step.step, tensor.computed_in_fp16(), true);
}

bool OverflowFindings::bounds(const underflow::TensorFindings& tensor,
                              const underflow::StepFindings& step) const {
  if (!tensor.loss_scaled) return tensor.computed_in_fp16();
  const bool in_fp16 =
      tensor.computed_in_fp16() || (!tensor.source_dtype && !tensor.computed_dtype);
  if (tensor.role != log::Role::loss) {
    return bounds(*tensor.log, tensor.role, step.step, in_fp16, false);
  }
  const bool multiplied = !underflow::before_scaling(tensor, step);
  return multiplied && in_fp16 && !not_scale_related.contains({*tensor.log, step.step});
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
      for (const Run& run : find_runs(view, kind)) {
        findings.events.push_back(event_of(view, run));
        add_explained(view, run, findings.events.back(), findings.nan_explained);
      }
    }
    std::stable_sort(
        findings.events.begin() + static_cast<std::ptrdiff_t>(begin), findings.events.end(),
        [](const OverflowEvent& a, const OverflowEvent& b) { return a.step < b.step; });
  }
  for (const underflow::LogFindings& log : analysis.logs) {
    add_steps(log, findings);
    add_broken_forward(log, findings.broken_forward);
  }
  findings.headroom = find_headroom(analysis, findings);
  std::ranges::sort(findings.headroom, {},
                    [](const Headroom& h) { return std::pair(h.least, h.tensor); });
  return findings;
}

}  // namespace halfscope::analyzers::overflow
