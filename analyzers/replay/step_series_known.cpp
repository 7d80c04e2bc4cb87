// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_known.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::replay {

using log::Role;

OfGradients<unsigned> ranks_wanted(unsigned folders, const std::optional<log::Manifest>& manifest) {
  if (!manifest) return {folders, folders};
  const unsigned all = std::max(folders, static_cast<unsigned>(std::max(1, manifest->world_size)));
  const auto& sharded = manifest->sharded;
  const bool parts = std::find(sharded.begin(), sharded.end(), Role::weight_grad) != sharded.end();
  // If several ranks have records, each may have recorded its own gradients before the sum.
  return {folders > 1 || parts ? all : 1, all};
}

bool Recorded::all_weights(const SeriesStep& step) const {
  return step.told.weights == ranks.weights ||
         (ranks.weights == 1 && tables.weights != 0 && step.tables.weights == tables.weights);
}

bool Recorded::partial(const SeriesStep& step) const {
  const bool activations = step.told.activations == ranks.activations ||
                           (ranks.activations == 1 && tables.activations != 0 &&
                            step.tables.activations == tables.activations);
  return (scalars.max_abs.weights && !all_weights(step)) ||
         (scalars.max_abs.activations && !activations) || step.scaled_microbatches ||
         step.lacks_microbatches(scalars, ranks.activations);
}

bool Recorded::partial(const SeriesAttempt& attempt) const {
  return !attempt.largest.all ||
         (scalars.max_abs.weights && attempt.told.weights != ranks.weights) ||
         (scalars.max_abs.activations && attempt.told.activations != ranks.activations);
}

namespace {

constexpr int kEnough = 4096;  // more backoffs than any scale needs to reach the smallest

/// Returns the largest scale at which the policy applies infinities; -1: none; infinity: all.
double untested_to(policy::Policy policy) {
  const policy::Needs needs = policy::info_of(policy).needs;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (needs == policy::Needs::tensors || needs == policy::Needs::layers) return kNever;
  double most = -1;
  for (int i = 0; i < kEnough; ++i) {
    const double scale = policy::scale_of(policy);
    const policy::Decision decision =
        policy::advance(policy, {.nonfinite = true, .max_abs = INFINITY, .layer = nullptr});
    if (!decision.error.empty()) break;
    if (decision.action != policy::Action::apply) continue;
    if (i == 0) return kNever;
    most = std::max(most, scale);
  }
  return most;
}

/// Returns false for a static scale in the user's own training loop, which may be tested or not.
bool says_enough(const nlohmann::json& loss_scaling) {
  const auto name = loss_scaling.find("policy");
  return name == loss_scaling.end() || *name != "static" || loss_scaling.contains("skip");
}

}  // namespace

std::optional<double> untested_to(const std::optional<log::Manifest>& manifest,
                                  const std::map<std::int64_t, SeriesStep>& steps) {
  double most = std::numeric_limits<double>::infinity();
  StepSeries told;
  told.manifest = manifest;
  const auto own = recorded_policy(told);
  if (own && says_enough((*manifest->about)["loss_scaling"])) {
    most = untested_to(*own);
  } else {
    const bool skips = std::any_of(steps.begin(), steps.end(), [](const auto& step) {
      return step.second.found_inf.value_or(false);
    });
    if (skips) most = -1;
  }
  if (std::isinf(most)) return std::nullopt;
  const bool applied = std::any_of(steps.begin(), steps.end(), [&](const auto& entry) {
    const SeriesStep& step = entry.second;
    const bool infinite = step.largest.weights && !std::isfinite(*step.largest.weights);
    return infinite && step.found_inf == false && step.most_scale > most;
  });
  return applied ? std::nullopt : std::optional(most);
}

}  // namespace halfscope::analyzers::replay
