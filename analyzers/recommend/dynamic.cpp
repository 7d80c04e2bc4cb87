// SPDX-License-Identifier: Apache-2.0
// Settings for dynamic loss scaling, and the recorded steps that they would skip.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::recommend {
namespace {

/// Policies of the frameworks that configuration lines can be printed for.
constexpr std::string_view kPolicies[] = {"torch",    "keras2",  "keras3", "deepspeed,hysteresis=1",
                                          "megatron", "fairseq", "apex",   "mxnet",
                                          "nnabla",   "flax",    "jmp"};

/// Adds the steps that a policy skips in one run. Unread steps are counted separately, except those
/// that the run itself found clean.
void add_skips(const replay::Trace& trace, const replay::StepSeries& run, const Peaks& peaks,
               SkipBound& to) {
  const auto log = std::ranges::find(peaks.logs, run.log, &LogMaxima::log);
  const auto unread_in = [&](const std::vector<std::int64_t>& steps) {
    if (log == peaks.logs.end()) return std::uint64_t{0};
    return static_cast<std::uint64_t>(std::ranges::count_if(
        steps, [&](std::int64_t step) { return log->unread.steps.contains(step); }));
  };
  const std::uint64_t skipped = unread_in(trace.skipped), unknown = unread_in(trace.unknown);
  to.unread += skipped + unknown;
  to.unread_exceedances += skipped;
  to.steps += trace.length - skipped - unknown;
  to.exceedances += trace.skipped.size() - skipped;
  to.perhaps += trace.unknown.size() - unknown;
}

/// Returns the settings of a policy that serve a run best.
DynamicAdvice best_of(const replay::TunedPolicy& tuned, const replay::StepSeries& run,
                      const Peaks& peaks) {
  SkipBound skips;
  add_skips(tuned.trace, run, peaks, skips);
  estimate(skips);
  return {tuned.trace.policy, tuned.initial, tuned.interval, skips, tuned.tried, tuned.kept};
}

bool goes_on(const replay::Trace& trace) { return !trace.error && trace.applied_nonfinite.empty(); }

bool makes_a_step(const DynamicAdvice& advice) {
  if (!advice.replayed) return true;
  const SkipBound& found = *advice.replayed;
  return found.overflowing().low < found.steps + found.unread;
}

/// Returns settings that start at twice the static scale. A scale that is too large costs little
/// here: an overflow skips one step and halves the scale.
std::optional<DynamicAdvice> twice(const policy::Policy& policy, const Recommendation& advice,
                                   std::span<const replay::StepSeries> runs) {
  const auto interval = policy::number_of(policy, policy::info_of(policy).interval);
  if (!interval) return std::nullopt;
  const auto settings = replay::with_settings(policy, *advice.static_log2 + 1, *interval);
  if (!settings) return std::nullopt;
  std::optional<SkipBound> skips;
  for (const replay::StepSeries& run : runs) {
    if (!skips) skips.emplace();
    add_skips(replay::replay(*settings, run), run, advice.peaks, *skips);
  }
  if (skips) estimate(*skips);
  return DynamicAdvice{
      *settings, policy::scale_of(*settings), static_cast<std::uint64_t>(*interval), skips, 0,
      false};
}

std::string_view name_of(const policy::Policy& policy) { return policy::info_of(policy).name; }

/// Returns the run's own policy or PyTorch's, then the others that have configuration lines.
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

/// Returns settings that suit all logs: the smallest initial scale, the longest window. Empty if a
/// log ends in a failure that no scale prevents, or has no settings.
std::optional<ScaleSettings> common_settings(std::span<const TimelineFacts> logs) {
  std::optional<ScaleSettings> all;
  for (const TimelineFacts& log : logs) {
    const bool lost =
        log.state == scale_history::RunState::broken || log.collapsed_since().has_value();
    if (lost || !log.settings) return std::nullopt;
    if (!all) all = log.settings;
    all->init = std::min(all->init, log.settings->init);
    all->longer = std::max(all->longer, log.settings->longer);
    all->hysteresis = std::max(all->hysteresis, log.settings->hysteresis);
  }
  return all;
}

/// Returns the policy of the tool that wrote the log, as text for policy::make().
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

/// Returns a policy that starts at the value where the run's scale settled.
std::optional<DynamicAdvice> settled(const policy::Policy& policy, const ScaleSettings& settings) {
  const auto usual = policy::number_of(policy, policy::info_of(policy).interval);
  if (!usual) return std::nullopt;
  const double interval = std::max(*usual, static_cast<double>(settings.longer.value_or(0)));
  const int log2 = std::ilogb(settings.init);
  const auto with = replay::with_settings(policy, log2, interval);
  if (!with) return std::nullopt;
  DynamicAdvice advice{*with, policy::scale_of(*with), static_cast<std::uint64_t>(interval), {}};
  advice.from_run_scale = true;
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
  // The frameworks' scalers support binary16 only.
  const bool served = basis.analysis.target.format == kBinary16;
  if (!advice.static_log2 || advice.needs_no_scale() || !served) return;
  std::vector<DynamicAdvice> useless;
  for (const policy::Policy& policy : policies_for(runs)) {
    std::optional<DynamicAdvice> found;
    bool useful = true;
    if (runs.size() != 1) {  // no setting is the best for several runs
      found = twice(policy, advice, runs);
      useful = found && makes_a_step(*found);
    } else if (const auto tuned = replay::tune(policy, runs.front(), basis.options, harmless)) {
      found = best_of(*tuned, runs.front(), advice.peaks);
      useful = goes_on(tuned->trace) && makes_a_step(*found);
    }
    if (found) (useful ? advice.dynamic : useless).push_back(std::move(*found));
  }
  if (advice.dynamic.empty() && !useless.empty()) advice.dynamic.push_back(useless.front());
}

}  // namespace halfscope::analyzers::recommend
