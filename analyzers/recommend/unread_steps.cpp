// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/unread_steps.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "analyzers/underflow/clipped.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {
namespace {

using StepSet = std::set<std::int64_t>;

/// Returns the steps at which the log has a magnitude of any gradient of the role.
StepSet steps_with(const underflow::LogFindings& log, log::Role role) {
  StepSet steps;
  for (const underflow::TensorFindings& t : log.tensors) {
    if (t.role != role) continue;
    for (const underflow::StepFindings& step : t.per_step) steps.insert(step.step);
  }
  for (const frames::StepPeak& peak : log.peaks) {
    if (peak.role == role) steps.insert(peak.step);
  }
  return steps;
}

}  // namespace

UnreadSteps unread_steps(const underflow::LogFindings& log) {
  constexpr std::array kRoles = {log::Role::activation_grad, log::Role::weight_grad};
  const std::array read = {steps_with(log, kRoles[0]), steps_with(log, kRoles[1])};
  StepSet all = read[0];
  all.insert(read[1].begin(), read[1].end());
  UnreadSteps unread;
  unread.of = all.size();
  unread.by_recorder = log.manifest && log.manifest->about->contains("recorder");
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (read[i].empty()) continue;  // the log has none of this role anywhere
    const std::size_t lacking = all.size() - read[i].size();
    std::ranges::set_difference(all, read[i], std::inserter(unread.steps, unread.steps.end()));
    if (lacking > unread.lacking) unread.lacking = lacking, unread.role = kRoles[i];
  }
  for (const log::StepScalars& scalars : log.scalars) {
    if (underflow::misses_gradients(scalars)) unread.steps.insert(scalars.step);
  }
  return unread;
}

}  // namespace halfscope::analyzers::recommend
