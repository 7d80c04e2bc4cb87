// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_parts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analyzers/frames/microbatches.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::replay {
namespace {

using log::Role;
using log::StepScalars;

/// Returns the attempt's number, from 0, of a tag that ends in "/attempt-N"; else empty.
std::optional<unsigned> attempt_of(std::string_view tag) {
  constexpr std::string_view kMark = "/attempt-";
  const std::size_t at = tag.rfind(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = tag.substr(at + kMark.size());
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? std::optional(number) : std::nullopt;
}

/// Returns the scale; empty if it is negative, because that is no scale.
std::optional<double> scale_in(std::optional<double> scale) {
  return scale.value_or(-1) >= 0 ? scale : std::nullopt;
}

}  // namespace

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void LargestMagnitudes::see(Role role, double magnitude) {
  if (role == Role::weight_grad) weights = weights ? larger(*weights, magnitude) : magnitude;
  if (role == Role::weight_grad && std::isfinite(magnitude)) {
    sums = std::max(sums.value_or(0), magnitude);
  } else {
    see(magnitude);
  }
}

void LargestMagnitudes::take_sums(bool parts_count) {
  if (sums && !parts_count) see(*sums);
  sums.reset();
}

void SeriesStep::take_sums(bool in_fp32, unsigned ranks) {
  const bool parts_count = in_fp32 && microbatches.weights == ranks && !scaled_microbatches;
  largest.take_sums(parts_count);
  wide.take_sums(parts_count);
  // The scalars of microbatches are recorded for the last attempt only.
  for (auto& [number, attempt] : attempts) attempt.largest.take_sums(false);
}

void SeriesAttempt::see(Role role, double magnitude, Recorded& recorded) {
  largest.see(role, std::abs(magnitude));
  ++told.of(role);
  recorded.max_abs.of(role) = true;
}

void SeriesStep::take_wide(bool any_narrow) {
  if (wide.all && (!any_narrow || !largest.all)) largest.see(*wide.all);
  if (!wide.weights || (any_narrow && largest.weights)) return;
  largest.weights = larger(*wide.weights, largest.weights.value_or(0));
}

void SeriesStep::add(const StepScalars& scalars, std::optional<double> microbatch_scale,
                     Recorded& recorded) {
  if (const auto own = scale_in(scalars.loss_scale)) {
    if (!loss_scale) loss_scale = own;
    least_scale = std::min(least_scale, *own);
    most_scale = std::max(most_scale, *own);
  }
  if (scalars.found_inf) {
    found_inf = found_inf.value_or(false) || *scalars.found_inf;
    ++told_found_inf;
  }
  if (const auto& weights = scalars.max_abs_weight_grad) {
    see(Role::weight_grad, *weights, recorded);
  }
  if (const auto& activations = scalars.max_abs_activation_grad) {
    see(Role::activation_grad, *activations, recorded);
  }
  add_microbatches(scalars, microbatch_scale);
  recorded.microbatches.weights |= microbatches.weights != 0;
  recorded.microbatches.activations |= microbatches.activations != 0;
  add_attempts(scalars, recorded);
}

void SeriesStep::add_microbatches(const StepScalars& scalars, std::optional<double> scale) {
  OfGradients<bool> told_here;
  for (const auto& [tag, value] : scalars.more) {
    const bool weights = frames::is_microbatch(tag, Role::weight_grad);
    if (!weights && !frames::is_microbatch(tag, Role::activation_grad)) continue;
    (weights ? told_here.weights : told_here.activations) = true;
    if (!std::isfinite(value)) {
      largest.see(value);
    } else if (scale) {
      largest.see(std::abs(value) / *scale);
    } else {
      scaled_microbatches = std::max(scaled_microbatches.value_or(0), std::abs(value));
    }
  }
  microbatches.weights += told_here.weights;
  microbatches.activations += told_here.activations;
}

void SeriesStep::unscale_microbatches(std::optional<double> scale) {
  if (!scaled_microbatches || !frames::usable_scale(scale.value_or(0))) return;
  largest.see(*scaled_microbatches / *scale);
  scaled_microbatches.reset();
}

bool SeriesStep::lacks_microbatches(const Recorded& recorded) const {
  const unsigned ranks = recorded.ranks.activations;
  const bool one = ranks == 1 && told.weights == 1 && microbatches.weights == 0;
  return (recorded.microbatches.weights && microbatches.weights != ranks && !one) ||
         (recorded.microbatches.activations && microbatches.activations != ranks &&
          told.activations != ranks);
}

void SeriesStep::add_attempts(const StepScalars& scalars, Recorded& recorded) {
  for (const auto& [tag, value] : scalars.more) {
    const auto number = attempt_of(tag);
    if (!number) continue;
    const std::string end = "/attempt-" + std::to_string(*number);
    if (tag == "max_abs/weight_grad" + end) {
      attempts[*number].see(Role::weight_grad, value, recorded);
    } else if (tag == "max_abs/activation_grad" + end) {
      attempts[*number].see(Role::activation_grad, value, recorded);
    } else if (tag == "loss_scale" + end) {
      std::optional<double>& scale = attempts[*number].loss_scale;
      if (!scale) scale = scale_in(value);
    }
  }
}

OfGradients<unsigned> ranks_wanted(unsigned folders, const std::optional<log::Manifest>& manifest) {
  if (!manifest) return {folders, folders};
  const unsigned all = std::max(folders, static_cast<unsigned>(std::max(1, manifest->world_size)));
  const auto& sharded = manifest->sharded;
  const bool parts = std::find(sharded.begin(), sharded.end(), Role::weight_grad) != sharded.end();
  // If several ranks have records, each may have recorded its own gradients before the sum.
  return {folders > 1 || parts ? all : 1, all};
}

bool Recorded::knows(const SeriesStep& step, Role role) const {
  return step.told.of(role) == ranks.of(role) ||
         (ranks.of(role) == 1 && tables.of(role) != 0 && step.tables.of(role) == tables.of(role));
}

bool Recorded::partial(const SeriesStep& step) const {
  return (max_abs.weights && !knows(step, Role::weight_grad)) ||
         (max_abs.activations && !knows(step, Role::activation_grad)) || step.scaled_microbatches ||
         step.lacks_microbatches(*this);
}

bool Recorded::partial(const SeriesAttempt& attempt) const {
  return !attempt.largest.all || (max_abs.weights && attempt.told.weights != ranks.weights) ||
         (max_abs.activations && attempt.told.activations != ranks.activations);
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
  const auto own = recorded_policy(manifest);
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
