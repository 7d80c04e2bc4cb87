// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/replay/replay_loop.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// Two neighbouring steps with recorded, different scales.
struct Change {
  std::size_t before = 0, at = 0;  ///< indices
  double was = 0, now = 0;
  double steps = 0;  ///< number of steps from one to the other

  double ratio() const { return now / was; }
};

std::vector<Change> changes_of(const StepSeries& series) {
  std::vector<Change> changes;
  std::optional<std::size_t> before;
  for (std::size_t i = 0; i < series.recorded_scale.size(); ++i) {
    if (!series.recorded_scale[i]) continue;
    const double now = *series.recorded_scale[i];
    if (before && *series.recorded_scale[*before] != now && now > 0 && std::isfinite(now)) {
      changes.push_back({*before, i, *series.recorded_scale[*before], now,
                         static_cast<double>(series.steps[i] - series.steps[*before])});
    }
    before = i;
  }
  return changes;
}

/// Returns the largest factor by which a policy raises the scale in one step; infinity if a
/// statistic sets the scale.
double growth_of(const policy::Policy& policy) {
  if (policy::info_of(policy).needs != policy::Needs::nonfinite) return INFINITY;
  double factor = 1;
  for (const auto& [name, value] : policy::settings_of(policy)) {
    const auto names = [&, setting = name](std::string_view part) {
      return setting.find(part) != setting.npos;
    };
    const bool grows = names("factor") || names("ratio") || names("multiplier");
    if (grows) factor = std::max(factor, policy::number_of(policy, name).value_or(1));
  }
  return factor > 1 ? factor : 2;
}

/// As growth_of(), for an unknown policy: the largest factor of the known policies, or a larger
/// one by which the scale rose three times in a row at equal distances.
double growth_in(const StepSeries& series, const std::vector<Change>& changes) {
  constexpr double kOfAll = 16;
  std::vector<Change> rises;
  std::ranges::copy_if(changes, std::back_inserter(rises),
                       [](const Change& change) { return change.now > change.was; });
  const auto far = [&](std::size_t i) {
    return series.steps[rises[i + 1].at] - series.steps[rises[i].at];
  };
  double factor = kOfAll;
  for (std::size_t i = 0; i + 2 < rises.size(); ++i) {
    const double ratio = rises[i].ratio();
    const bool same = ratio == rises[i + 1].ratio() && ratio == rises[i + 2].ratio();
    if (same && far(i) == far(i + 1)) factor = std::max(factor, ratio);
  }
  return factor;
}

/// Returns true if no factor can restore the scale from this value.
bool is_lost(double scale) { return scale == 0 || !std::isfinite(scale); }

/// Returns true if the scale rises by more than growth allows; it may grow at unrecorded steps.
bool rises_too_far(const Change& change, double factor) {
  if (is_lost(change.was)) return true;
  return change.now > change.was * std::pow(factor, change.steps) * 1.000001;
}

/// Returns true if the scale falls although neither of the two steps before overflowed. Two,
/// because MXNet's scale falls one step late.
bool falls_unasked(const Change& change, const StepSeries& series) {
  if (!(change.now < change.was) || change.at < 2) return false;
  for (const std::size_t i : {change.at - 2, change.at - 1}) {
    const bool next = series.steps[i] + 1 == series.steps[i + 1];
    const bool filled = !series.filled.empty() && series.filled[i];
    const bool took = !series.recorded_skip.empty() && series.recorded_skip[i] == false;
    if (!next || filled || !took || !series.recorded_scale[i]) return false;
    if (judge(series.seen[i], *series.recorded_scale[i]) != OverflowVerdict::clean) return false;
  }
  return true;
}

/// Returns the run's initial scale; empty if unknown.
std::optional<double> start_of(const StepSeries& series,
                               const std::optional<policy::Policy>& policy) {
  if (policy) return policy::scale_of(*policy);
  return series.steps.front() == 0 ? series.recorded_scale.front() : std::nullopt;
}

Pitfall risen(const Change& change, const StepSeries& series,
              const std::optional<policy::Policy>& policy) {
  const std::int64_t step = series.steps[change.at];
  const bool anew = start_of(series, policy) == change.now;
  const std::string why = is_lost(change.was)
                              ? "where no policy comes back from"
                              : fmt::format("which is more than {} lets it grow",
                                            policy ? "the policy" : "any policy known here");
  return {PitfallKind::not_in_checkpoint, "recorded", step,
          fmt::format("The loss scale jumps from {} to {} at step {}, {}.", scale_words(change.was),
                      scale_words(change.now), step, why),
          fmt::format(
              "This is typical of training that was resumed without the scaler's state in the "
              "checkpoint{}. If the scale is then too large, steps are skipped until it has come "
              "down. Save and load the scaler's state too (scaler.state_dict() in PyTorch).",
              anew ? ": it begins at its initial scale again" : ", or the scale was set by hand")};
}

Pitfall fallen(const Change& change, const StepSeries& series) {
  const std::int64_t step = series.steps[change.at];
  return {
      PitfallKind::not_in_checkpoint, "recorded", step,
      fmt::format("The loss scale falls from {} to {}, where it starts, at step {}, although "
                  "no step before that overflowed.",
                  scale_words(change.was), scale_words(change.now), step),
      "This is typical of training that was resumed without the scaler's state in the checkpoint: "
      "until the scale has grown again, more gradients than necessary are flushed to zero. "
      "Save and load the scaler's state too (scaler.state_dict() in PyTorch)."};
}

/// Returns the first fall to the initial scale. Null if there is none, or if some fall without an
/// overflow ends at another value: then another rule than overflow lowers the scale.
const Change* first_fall(const std::vector<Change>& changes, const StepSeries& series,
                         const std::optional<policy::Policy>& policy) {
  // NNabla's scale falls within a step, at attempts that may not be recorded.
  if (policy && policy::info_of(*policy).name == "nnabla") return nullptr;
  const std::optional<double> start = start_of(series, policy);
  const Change* first = nullptr;
  for (const Change& change : changes) {
    if (!falls_unasked(change, series)) continue;
    if (!start || change.now != *start) return nullptr;
    if (first == nullptr) first = &change;
  }
  return first;
}

}  // namespace

std::optional<Pitfall> scale_reset(const StepSeries& series) {
  const std::vector<Change> changes = changes_of(series);
  if (changes.empty()) return std::nullopt;
  const std::optional<policy::Policy> policy = recorded_policy(series.manifest);
  const double factor = policy ? growth_of(*policy) : growth_in(series, changes);
  if (!std::isfinite(factor)) return std::nullopt;
  const auto rise = std::ranges::find_if(changes, [&](const Change& change) {
    return series.retried.count(change.before) == 0 && rises_too_far(change, factor);
  });
  const Change* const fall = first_fall(changes, series, policy);
  if (rise != changes.end() && (fall == nullptr || rise->at < fall->at)) {
    return risen(*rise, series, policy);
  }
  return fall == nullptr ? std::nullopt : std::optional(fallen(*fall, series));
}

}  // namespace halfscope::analyzers::replay
