// SPDX-License-Identifier: Apache-2.0
// The run's own policy and trace, and the comparison of a replay with the run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analyzers/replay/replay.hpp"
#include "analyzers/replay/replay_loop.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// Returns a setting as text for policy::make(); empty if its type is not supported.
std::string text_of(const nlohmann::json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  return {};
}

/// Returns the policy's own name for a key of the manifest; empty if it has none. Recorders call
/// the initial scale "scale".
std::string_view setting_of(const policy::Policy& policy, const std::string& key) {
  const policy::Info& info = policy::info_of(policy);
  for (const auto& [name, value] : policy::settings_of(policy)) {
    if (name == key) return name;
  }
  if (key == "growth_interval") return info.interval;
  return key == "scale" || key == "initial_scale" ? info.initial : std::string_view();
}

}  // namespace

std::optional<policy::Policy> recorded_policy(const std::optional<log::Manifest>& manifest) {
  if (!manifest) return std::nullopt;
  const nlohmann::json& about = *manifest->about;
  const auto told = about.find("loss_scaling");
  if (told == about.end() || !told->is_object()) return std::nullopt;
  const auto name = told->find("policy");
  if (name == told->end() || !name->is_string()) return std::nullopt;
  try {
    const policy::Policy defaults = policy::make(name->get<std::string>());
    std::string text(policy::info_of(defaults).name);
    std::vector<std::string_view> given;
    for (const auto& [key, value] : told->items()) {
      const std::string_view setting = setting_of(defaults, key);
      const std::string as_text = text_of(value);
      if (setting.empty() || as_text.empty()) continue;
      if (std::find(given.begin(), given.end(), setting) != given.end()) continue;
      given.push_back(setting);
      text += fmt::format(",{}={}", setting, as_text);
    }
    return policy::make(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;  // "none", or one that is not known here
  }
}

namespace {

/// Adds the run's own step. Empty `scale` or `skip`: not recorded. Without a scale it is unknown
/// whether finite gradients overflowed.
void add_recorded(Trace& trace, const StepSeries& series, std::size_t i,
                  std::optional<double> scale, std::optional<bool> skip) {
  const std::int64_t step = series.steps[i];
  const bool says = skip.has_value();
  const bool skipped = says && *skip;
  const auto retried = series.retried.find(i);
  const bool once = retried == series.retried.end();
  const AttemptMagnitudes& last = once ? series.seen[i] : retried->second.back();
  if (!once) trace.attempts[i] = static_cast<std::uint32_t>(retried->second.size());
  const OverflowVerdict verdict = scale ? judge(series.seen[i], *scale) : OverflowVerdict::unknown;
  // A finite step that was applied did not overflow, even if it would have in FP16.
  const bool fine = once && says && !skipped && std::isfinite(last.max_abs);
  if (verdict == OverflowVerdict::overflow && !fine) trace.overflow.push_back(step);
  if (!says) {
    // An overflow was skipped or went into the weights; the log does not say which.
    if (verdict != OverflowVerdict::clean) trace.unknown.push_back(step);
  } else if (skipped) {
    trace.skipped.push_back(step);
    if (in_model(last)) ++trace.model_nan_skips;
  } else if (!std::isfinite(last.max_abs)) {
    trace.applied_nonfinite.push_back(step);
    if (in_model(last)) ++trace.model_nan_applied;
  } else if (once && scale && verdict == OverflowVerdict::clean && all_vanish(last, *scale)) {
    trace.all_flushed.push_back(step);
  }
}

}  // namespace

std::optional<Trace> recorded_trace(const StepSeries& series) {
  const auto known = std::find_if(series.recorded_scale.begin(), series.recorded_scale.end(),
                                  [](const auto& scale) { return scale.has_value(); });
  if (known == series.recorded_scale.end()) return std::nullopt;
  Trace trace;
  trace.name = "recorded";
  trace.first_step = series.steps.front();
  double scale = **known;
  std::optional<double> told_scale;
  std::optional<bool> told_skip;
  for (std::size_t i = 0; i < series.steps.size(); ++i) {
    scale = series.recorded_scale[i].value_or(scale);
    add_scale(trace.scale, i, scale);
    if (series.filled.empty() || !series.filled[i]) {  // inserted steps repeat the step before
      told_scale = series.recorded_scale[i];
      told_skip = series.recorded_skip.empty() ? std::nullopt : series.recorded_skip[i];
    }
    add_recorded(trace, series, i, told_scale, told_skip);
  }
  trace.length = series.steps.size();
  trace.final_scale = scale;
  if (scale == 0) trace.outcome = TraceOutcome::zero;
  if (std::isinf(scale)) trace.outcome = TraceOutcome::infinity;
  add_flushed(trace, series);
  return trace;
}

std::pair<std::optional<Difference>, std::uint64_t> compare_with_run(const Trace& trace,
                                                                     const StepSeries& series) {
  std::optional<Difference> first;
  std::uint64_t compared = 0;
  auto run = trace.scale.begin();
  auto skip = trace.skipped.begin();
  for (std::size_t i = 0; i < std::min(series.steps.size(), trace.length); ++i) {
    // After a step with unknown outcome the policy's decisions are unknown.
    if (!trace.unknown.empty() && series.steps[i] >= trace.unknown.front()) break;
    while (run != trace.scale.end() && run + 1 != trace.scale.end() && (run + 1)->first <= i) ++run;
    while (skip != trace.skipped.end() && *skip < series.steps[i]) ++skip;
    const auto scale = series.recorded_scale.empty() ? std::nullopt : series.recorded_scale[i];
    const auto skipped = series.recorded_skip.empty() ? std::nullopt : series.recorded_skip[i];
    if (!scale && !skipped) continue;
    ++compared;
    Difference here;
    here.step = series.steps[i];
    here.replayed_scale = run == trace.scale.end() ? NAN : run->second;
    here.replayed_skip = skip != trace.skipped.end() && *skip == here.step;
    here.recorded_scale = scale.value_or(here.replayed_scale);
    here.recorded_skip = skipped.value_or(here.replayed_skip);
    const bool both_nan = std::isnan(here.replayed_scale) && std::isnan(here.recorded_scale);
    const bool same_scale = both_nan || here.replayed_scale == here.recorded_scale;
    if (!first && (!same_scale || here.replayed_skip != here.recorded_skip)) first = here;
  }
  if (!first && trace.error && trace.unknown.empty() && trace.length < series.steps.size()) {
    first = Difference{series.steps[trace.length], NAN, NAN, false, false};  // the run went on
  }
  return {first, compared};
}

}  // namespace halfscope::analyzers::replay
