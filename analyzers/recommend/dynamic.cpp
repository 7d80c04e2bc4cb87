// SPDX-License-Identifier: Apache-2.0
// Settings for dynamic loss scaling, and how many of the recorded steps they skip.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/policy_grid.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::recommend {
namespace {

/// The policies of the frameworks that there are lines to paste for.
constexpr std::string_view kPolicies[] = {"torch",    "keras2",  "keras3", "deepspeed,hysteresis=1",
                                          "megatron", "fairseq", "apex",   "mxnet",
                                          "nnabla"};

/// What settings skip: of each run a trace.
ReplayedSkips skips_of(std::span<const replay::Trace> traces) {
  ReplayedSkips found;
  for (const replay::Trace& trace : traces) {
    found.steps += trace.length;
    found.skipped += Interval(trace.skipped.size(), trace.skipped.size() + trace.unknown.size());
  }
  found.low = proportion(found.skipped.low, found.steps).low;
  found.high = proportion(found.skipped.high, found.steps).high;
  return found;
}

/// The settings of a policy that serve a run best.
DynamicAdvice best_of(const replay::TunedPolicy& tuned) {
  return {tuned.trace.policy,          tuned.initial, tuned.interval,
          skips_of({&tuned.trace, 1}), tuned.tried,   tuned.kept};
}

bool goes_on(const replay::Trace& trace) { return !trace.error && trace.applied_nonfinite.empty(); }

bool makes_a_step(const DynamicAdvice& advice) {
  return !advice.replayed || advice.replayed->skipped.low < advice.replayed->steps;
}

/// Twice the static scale. Headroom costs nothing here: an overflow skips one step, and halves the
/// scale.
std::optional<DynamicAdvice> twice(const policy::Policy& policy, int static_log2,
                                   std::span<const replay::StepSeries> runs) {
  const auto interval = policy::number_of(policy, policy::info_of(policy).interval);
  if (!interval) return std::nullopt;
  const auto settings = replay::with_settings(policy, static_log2 + 1, *interval);
  if (!settings) return std::nullopt;
  std::vector<replay::Trace> traces;
  for (const replay::StepSeries& run : runs) traces.push_back(replay::replay(*settings, run));
  std::optional<ReplayedSkips> skips;
  if (!traces.empty()) skips = skips_of(traces);
  return DynamicAdvice{
      *settings, policy::scale_of(*settings), static_cast<std::uint64_t>(*interval), skips, 0,
      false};
}

std::string_view name_of(const policy::Policy& policy) { return policy::info_of(policy).name; }

/// The run's own policy or PyTorch's first, then the others that there are lines for.
std::vector<policy::Policy> policies_for(std::span<const replay::StepSeries> runs) {
  std::vector<policy::Policy> all;
  if (runs.size() == 1) all.push_back(replay::own_or_torch(runs.front()));
  for (const std::string_view text : kPolicies) {
    policy::Policy policy = policy::make(text);
    const auto same = [&](const policy::Policy& other) {
      return name_of(other) == name_of(policy);
    };
    if (std::ranges::none_of(all, same)) all.push_back(std::move(policy));
  }
  return all;
}

using scale_history::ScaleSettings;
using scale_history::TimelineFacts;

/// What all logs allow: the smallest start, the longest window. Empty where one of them ended in
/// what no scale helps, or tells of no settings.
std::optional<ScaleSettings> common_settings(std::span<const TimelineFacts> logs) {
  std::optional<ScaleSettings> all;
  for (const TimelineFacts& log : logs) {
    const bool lost = log.state == scale_history::RunState::broken || log.collapse() != nullptr;
    if (lost || !log.settings) return std::nullopt;
    if (!all) all = log.settings;
    all->init = std::min(all->init, log.settings->init);
    all->longer = std::max(all->longer, log.settings->longer);
    all->hysteresis = std::max(all->hysteresis, log.settings->hysteresis);
  }
  return all;
}

/// The policy of the tool that wrote a log, at the settings that serve it.
std::string policy_of(frames::Tool tool, const ScaleSettings& settings) {
  switch (tool) {
    case frames::Tool::deepspeed:
      return "deepspeed,hysteresis=" + std::to_string(settings.hysteresis);
    case frames::Tool::nemo:
    case frames::Tool::megatron: return "megatron";
    case frames::Tool::fairseq2:
    case frames::Tool::fairseq: return "fairseq";
    case frames::Tool::apex: return "apex";
    case frames::Tool::colossalai: return "colossalai";
    case frames::Tool::mindspore: return "mindspore";
    case frames::Tool::paddle: return "paddle";
    case frames::Tool::transformers:
    case frames::Tool::tensorboard:
    case frames::Tool::other: break;
  }
  return "torch";
}

/// A policy that starts where the run's scale settled.
std::optional<DynamicAdvice> settled(const policy::Policy& policy, const ScaleSettings& settings) {
  const auto usual = policy::number_of(policy, policy::info_of(policy).interval);
  if (!usual) return std::nullopt;
  const double interval = std::max(*usual, static_cast<double>(settings.longer.value_or(0)));
  const int log2 = std::ilogb(settings.init);
  const auto with = replay::with_settings(policy, log2, interval);
  if (!with) return std::nullopt;
  DynamicAdvice advice{*with, policy::scale_of(*with), static_cast<std::uint64_t>(interval), {}};
  advice.of_own_scale = true;
  return advice;
}

}  // namespace

void add_own_scale(Recommendation& advice, frames::Tool tool, std::span<const TimelineFacts> logs) {
  if (advice.no_scale != NoScale::no_gradients) return;
  const auto settings = common_settings(logs);
  if (!settings) return;
  const policy::Policy own = policy::make(policy_of(tool, *settings));
  if (auto found = settled(own, *settings)) advice.dynamic.push_back(std::move(*found));
  for (const std::string_view text : kPolicies) {
    const policy::Policy policy = policy::make(text);
    if (name_of(policy) == name_of(own)) continue;
    if (auto found = settled(policy, *settings)) advice.dynamic.push_back(std::move(*found));
  }
}

void add_dynamic(Recommendation& advice, const Basis& basis,
                 std::span<const replay::StepSeries> runs, const replay::Harmless& harmless) {
  const bool served = basis.analysis.target.format == kBinary16;  // by the frameworks' scalers
  if (!advice.static_log2 || advice.needs_no_scale() || !served) return;
  std::vector<DynamicAdvice> useless;
  for (const policy::Policy& policy : policies_for(runs)) {
    std::optional<DynamicAdvice> found;
    bool useful = true;
    if (runs.size() != 1) {  // of several runs no setting is the best for all
      found = twice(policy, *advice.static_log2, runs);
      useful = found && makes_a_step(*found);
    } else if (const auto tuned = replay::tune(policy, runs.front(), basis.options, harmless)) {
      found = best_of(*tuned);
      useful = goes_on(tuned->trace) && makes_a_step(*found);
    }
    if (found) (useful ? advice.dynamic : useless).push_back(std::move(*found));
  }
  if (advice.dynamic.empty() && !useless.empty()) advice.dynamic.push_back(useless.front());
}

}  // namespace halfscope::analyzers::recommend
