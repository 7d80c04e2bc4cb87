// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzers/overflow/overflow_parts.hpp"

namespace halfscope::analyzers::overflow {

using underflow::Analysis;
using underflow::LogSteps;

namespace {

/// Returns one tensor's state at one step. `overflow` is counted at its loss scale, or at 1.
TensorState glimpse_of(const underflow::TensorFindings& tensor,
                       const underflow::StepFindings& step) {
  return {step.step, step.max_abs, step.counts.nan, step.counts.inf,
          tensor.loss_scaled ? step.counts.classes.overflow : step.overflow_at_1};
}

constexpr std::size_t kTensors = 6;
constexpr std::ptrdiff_t kSteps = 4;  ///< the step itself and three before

Lead lead_of(const underflow::TensorFindings& tensor, std::string_view relation,
             std::int64_t step) {
  Lead lead{tensor.name, std::string(relation), {}};
  const auto end =
      std::ranges::upper_bound(tensor.per_step, step, {}, &underflow::StepFindings::step);
  const auto begin = end - std::min(kSteps, end - tensor.per_step.begin());
  for (auto at = begin; at != end; ++at) lead.glimpses.push_back(glimpse_of(tensor, *at));
  return lead;
}

/// Returns the lead of a role that only scalars show: its largest magnitudes.
Lead lead_of_scalars(const LogView& view, const Mark& mark, std::int64_t step) {
  Lead lead{std::string(log::name_of(mark.role)), "itself", {}};
  const auto end = std::upper_bound(view.scalar_steps.begin(), view.scalar_steps.end(), step);
  const auto begin = end - std::min(kSteps, end - view.scalar_steps.begin());
  for (auto at = begin; at != end; ++at) {
    const log::StepScalars& s = *view.scalars.at(*at);
    const std::optional<double> value = mark.role == log::Role::loss ? s.loss
                                        : mark.role == log::Role::activation_grad
                                            ? s.max_abs_activation_grad
                                            : s.max_abs_weight_grad;
    if (!value) continue;  // the step has no magnitude
    TensorState glimpse;
    glimpse.step = *at;
    if (value && std::isfinite(*value)) glimpse.max_abs = std::abs(*value);
    glimpse.nan = value && std::isnan(*value) ? 1 : 0;
    glimpse.inf = value && std::isinf(*value) ? 1 : 0;
    lead.glimpses.push_back(glimpse);
  }
  return lead;
}

/// Returns the tensor in which a run first appears and those it is computed from, each with its
/// last recorded steps up to the run. Limited to a few tensors and steps.
std::vector<Lead> find_leads(const LogView& view, const Run& run) {
  const Mark& mark = run.first();
  if (!mark.tensor) {
    Lead lead = lead_of_scalars(view, mark, run.first_step());
    return lead.glimpses.empty() ? std::vector<Lead>() : std::vector<Lead>{std::move(lead)};
  }
  std::vector<Lead> leads = {lead_of(view.tensor(*mark.tensor), "itself", run.first_step())};
  for (const underflow::Origin& origin : view.order().origins(*mark.tensor)) {
    if (leads.size() == kTensors) break;
    Lead lead = lead_of(view.tensor(origin.tensor), origin.relation, run.first_step());
    if (!lead.glimpses.empty()) leads.push_back(std::move(lead));
  }
  return leads;
}

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
  static_cast<Judgement&>(event) = judge(view, run);
  event.growth_probe =
      !event.what_if && event.cause == Cause::by_scale && is_growth_probe(view, run);
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

}  // namespace

std::string_view name_of(Cause cause) {
  constexpr std::string_view kNames[] = {"by_scale", "at_scale_1", "nan_in_model", "undetermined"};
  return kNames[static_cast<std::size_t>(cause)];
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
    for (const std::int64_t step : view.broken_forward) {
      findings.broken_forward.emplace(log.name, step);
    }
    add_steps(log, findings);
    std::stable_sort(
        findings.events.begin() + static_cast<std::ptrdiff_t>(begin), findings.events.end(),
        [](const OverflowEvent& a, const OverflowEvent& b) { return a.step < b.step; });
  }
  findings.headroom = find_headroom(analysis, findings);
  std::ranges::sort(findings.headroom, {},
                    [](const Headroom& h) { return std::pair(h.least, h.tensor); });
  return findings;
}

}  // namespace halfscope::analyzers::overflow
