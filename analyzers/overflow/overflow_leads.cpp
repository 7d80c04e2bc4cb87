// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow_leads.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::overflow {
namespace {

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

}  // namespace

TensorState glimpse_of(const underflow::TensorFindings& tensor,
                       const underflow::StepFindings& step) {
  return {step.step, step.max_abs, step.counts.nan, step.counts.inf,
          tensor.loss_scaled ? step.counts.classes.overflow : step.overflow_at_1};
}

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

}  // namespace halfscope::analyzers::overflow
