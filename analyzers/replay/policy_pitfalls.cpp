// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "halfscope/policy/nnabla.hpp"

namespace halfscope::analyzers::replay {
namespace {

constexpr double kSmallestNormal = 0x1p-14;

/// Returns the steps that surely overflow at the trace's last scale, which did not fall, although a
/// smaller scale might have held them.
std::vector<std::int64_t> stuck_steps(const Trace& trace, const StepSeries& series) {
  std::vector<std::int64_t> steps;
  const std::size_t from = trace.scale.empty() ? 0 : trace.scale.back().first;
  for (const std::int64_t step : trace.overflow) {
    if (index_of(series, step) >= from && by_scale(series, step)) steps.push_back(step);
  }
  return steps;
}

class Finder {
 public:
  Finder(const StepSeries& series, std::vector<Pitfall>& found) : series_(series), found_(found) {}

  void of_run() {
    nan_in_model();
    unexplained();
    if (auto reset = scale_reset(series_)) found_.push_back(std::move(*reset));
    const auto run = recorded_trace(series_);
    if (!run) return;
    ends(*run);
    dragged(*run);
    applied(*run);
  }

  void of_policy(const Trace& trace) {
    if (!trace.unavailable.empty()) return;
    floor(trace);
    exception(trace);
    hysteresis(trace);
    ends(trace);
    dragged(trace);
    applied(trace);
    retries(trace);
  }

 private:
  void add(PitfallKind kind, std::string_view policy, std::optional<std::int64_t> step,
           std::string what, std::string rest) {
    found_.push_back({kind, std::string(policy), step, std::move(what), std::move(rest)});
  }

  void nan_in_model() {
    std::optional<std::int64_t> first;
    std::size_t n = 0;
    for (std::size_t i = 0; i < series_.seen.size(); ++i) {
      if (!in_model(series_.seen[i])) continue;
      if (n++ == 0) first = series_.steps[i];
    }
    if (n == 0) return;
    add(PitfallKind::nan_in_model, "recorded", first,
        fmt::format("From step {} on, {} {} infinities or NaN that no loss scale cures: they "
                    "are there at every scale.",
                    *first, steps_words(n), n == 1 ? "has" : "have"),
        "Every policy treats them as overflow and lowers the scale in vain. Look for their origin "
        "with halfscope analyze; a lower learning rate, clipping, or FP32 for the operation that "
        "makes them helps.");
  }

  void unexplained() {
    if (series_.unexplained.empty()) return;
    const auto& [index, max_abs] = series_.unexplained.front();
    const double limit = kOverflow / series_.recorded_scale[index].value_or(NAN);
    add(PitfallKind::norm_overflow, "recorded", series_.steps[index],
        fmt::format(
            "The run skipped {} although every recorded gradient is finite and below what "
            "overflows: step {} is the first, where they reach {:.4g} and 65520 over the scale is "
            "{:.4g}.",
            steps_words(series_.unexplained.size()), series_.steps[index], max_abs, limit),
        "So the value that overflowed is not recorded: the norm of all gradients if it is summed "
        "in FP16, another rank, or a parameter that is not recorded. A smaller loss scale is no "
        "cure "
        "for a norm: compute it in FP32, and record every rank and parameter.");
  }

  void floor(const Trace& trace) {
    if (trace.outcome != TraceOutcome::floor) return;
    const std::vector<std::int64_t> steps = stuck_steps(trace, series_);
    Holds needed;
    std::optional<std::int64_t> first;
    for (const std::int64_t step : steps) {
      if (!first) first = step;
      const Holds one = holds(series_, step);
      needed = {std::min(needed.power, one.power), needed.sure && one.sure,
                needed.at_least || one.at_least};
    }
    if (!first) return;
    const std::string_view setting = policy::info_of(trace.policy).floor;
    const bool whole = policy::limits_of(trace.policy).whole_numbers;
    const double settable = whole ? std::floor(needed.power) : needed.power;
    const std::string way =
        setting.empty() ? std::string("Its floor cannot be set: take a policy without one (torch)")
                        : fmt::format("Set {} to {}{}", setting_words(trace.policy, setting),
                                      scale_words(settable), settable == 0 ? "" : " or less");
    add(PitfallKind::floor, trace.name, first,
        fmt::format("The scale cannot fall below {}, and {} overflow{} there, from step {} on; a "
                    "scale of {} would hold them.",
                    scale_words(trace.final_scale), steps_words(steps.size()),
                    steps.size() == 1 ? "s" : "", *first, needed.text()),
        fmt::format("They are skipped for as long as gradients are that large. {}, or divide the "
                    "loss by a constant.",
                    way));
  }

  /// Returns the reason why training ended at a step, and the way out.
  std::string way_out(const Trace& trace) const {
    const std::int64_t step = trace.error->step;
    const policy::Info& info = policy::info_of(trace.policy);
    if (trace.scale_at(index_of(series_, step)) == 0) {
      return fmt::format(
          "Its scale was 0 by then: nothing keeps it from falling there while {}. Stop such a run "
          "at the first step that fails at every scale and look for the origin, or take a policy "
          "with a floor.",
          trace.model_nan_skips != 0 ? "gradients hold infinities or NaN that no scale cures"
                                     : "gradients overflow");
    }
    if (!by_scale(series_, step)) {
      return "No scale would have helped: the gradients of that step hold infinities or NaN at "
             "every scale, so look for their origin.";
    }
    if (info.needs == policy::Needs::layers) {
      return "A layer's scale is made from the mean and the deviation of its gradients, and has "
             "none where one is infinite: keep what overflows in FP32, or lower the bounds of the "
             "scales.";
    }
    const std::string way = info.floor.empty()
                                ? std::string("take a policy that goes lower")
                                : fmt::format("lower {}, or divide the loss by a constant",
                                              setting_words(trace.policy, info.floor));
    return fmt::format("A scale of {} would have held that step's gradients: {}.",
                       holds(series_, step).text(), way);
  }

  void exception(const Trace& trace) {
    if (!trace.error) return;
    add(PitfallKind::exception, trace.name, trace.error->step,
        fmt::format("The framework ends training at step {}: \"{}\".", trace.error->step,
                    trace.error->message),
        way_out(trace));
  }

  /// Finds overflows at a scale that had overflowed one step before and was not lowered.
  void hysteresis(const Trace& trace) {
    const bool refills_at_growth =
        trace.name == "megatron" || trace.name == "colossalai" || trace.name == "deepspeed";
    const std::string_view setting = trace.name == "deepspeed" ? "delayed_shift" : "hysteresis";
    if (!refills_at_growth || policy::number_of(trace.policy, setting).value_or(1) <= 1) return;
    for (const auto& [name, value] : policy::settings_of(trace.policy)) {
      const auto* flag = std::get_if<bool>(&value);
      if (name == "consecutive_hysteresis" && flag != nullptr && *flag) return;
    }
    std::size_t kept = 0;
    std::optional<std::int64_t> first;
    const double floor = policy::limits_of(trace.policy).floor;
    for (std::size_t s = 0; s + 1 < trace.skipped.size(); ++s) {
      const std::int64_t step = trace.skipped[s], next = trace.skipped[s + 1];
      const std::size_t i = index_of(series_, step);
      const double scale = trace.scale_at(i);
      if (next != step + 1 || trace.scale_at(i + 1) != scale || scale <= floor) continue;
      if (!by_scale(series_, step) || !by_scale(series_, next)) continue;
      if (kept++ == 0) first = step;
    }
    const bool stuck =
        trace.outcome == TraceOutcome::floor || trace.outcome == TraceOutcome::infinity;
    if (kept == 0 || stuck || trace.outcome == TraceOutcome::zero) return;
    const std::string way = trace.name == "deepspeed"
                                ? "consecutive_hysteresis=true, or delayed_shift=1"
                                : "hysteresis=1";
    add(PitfallKind::hysteresis, trace.name, first,
        fmt::format("{} of {} skipped steps did not lower the scale, step {} first: {} lets "
                    "overflows pass before it does, and the next step overflowed too.",
                    kept, trace.skipped.size(), *first, setting_words(trace.policy, setting)),
        fmt::format("It is refilled only when the scale grows, not by a clean step: once used up, "
                    "a single overflow lowers the scale. Set {}.",
                    way));
  }

  /// Effects of the model's infinities on the scale: later steps whose gradients are below FP16's
  /// smallest normal number, and would not be if the scale had not been lowered.
  struct Dragged {
    std::int64_t first = 0;  ///< first step with such infinities
    double lowest = INFINITY;
    double least_magnitude = INFINITY;  ///< smallest value of a step's largest gradient
    std::size_t subnormal = 0, zero = 0;
  };

  Dragged dragged_by(const Trace& trace) const {
    Dragged found;
    const auto first = std::find_if(trace.skipped.begin(), trace.skipped.end(),
                                    [&](std::int64_t step) { return !by_scale(series_, step); });
    if (first == trace.skipped.end()) return found;
    found.first = *first;
    const double explained = least_by_overflow(trace, series_);
    std::size_t run = 0;
    for (std::size_t i = index_of(series_, *first); i < trace.length; ++i) {
      while (run + 1 < trace.scale.size() && trace.scale[run + 1].first <= i) ++run;
      const double scale = trace.scale[run].second;
      const AttemptMagnitudes& seen = series_.seen[i];
      const bool known = std::isfinite(seen.max_abs) && seen.max_abs > 0 && !seen.partial;
      if (!known || scale >= explained || seen.max_abs * scale >= kSmallestNormal) continue;
      ++found.subnormal;
      if (all_vanish(seen, scale)) ++found.zero;
      found.lowest = std::min(found.lowest, scale);
      found.least_magnitude = std::min(found.least_magnitude, seen.max_abs);
    }
    return found;
  }

  void dragged(const Trace& trace) {
    const Dragged found = dragged_by(trace);
    if (found.subnormal == 0 || trace.outcome == TraceOutcome::zero) return;
    const std::string_view others =
        found.least_magnitude >= kSmallestNormal
            ? "Another policy skips these steps too, but one with a floor (tf1, keras2 and paddle "
              "have 1) comes no lower than that. "
            : "";
    add(PitfallKind::dragged, trace.name, found.first,
        fmt::format(
            "{} had infinities or NaN that no scale cures, and each lowered the scale in vain, "
            "down to {} from {} at step {}.",
            steps_words(trace.model_nan_skips), scale_words(found.lowest),
            scale_words(trace.scale_at(index_of(series_, found.first))), found.first),
        fmt::format(
            "At {} after that even the largest gradient is below FP16's smallest normal number; at "
            "{} of them every gradient is flushed to zero, and nothing is learnt. {}Stop at the "
            "first such step and look for the origin, or set the scale anew after them "
            "(scaler.update(65536.0) in PyTorch).",
            steps_words(found.subnormal), found.zero, others));
  }

  void ends(const Trace& trace) {
    const bool mostly_nan = trace.model_nan_skips * 2 > trace.skipped.size();
    if (trace.outcome == TraceOutcome::zero) {
      add(PitfallKind::zero, trace.name, std::nullopt,
          fmt::format("The scale fell to 0, and every gradient is 0 from then on: {} of {} skipped "
                      "steps have infinities or NaN at every scale.",
                      trace.model_nan_skips, trace.skipped.size()),
          mostly_nan ? "The model makes them, and no scale cures it: stop such a run "
                       "at the first of them, and look for their origin."
                     : "Set a floor, or take a policy that has one.");
    }
    if (trace.outcome == TraceOutcome::infinity) {
      add(PitfallKind::infinity, trace.name, std::nullopt,
          "The scale grew to infinity and stays there: half of infinity is infinite, so every "
          "later step is skipped.",
          "The gradients are too small to ever overflow; set a largest "
          "scale where the policy has one, or take a static scale.");
    }
  }

  void applied(const Trace& trace) {
    if (trace.applied_nonfinite.empty()) return;
    const bool scale_helps = by_scale(series_, trace.applied_nonfinite.front());
    const char* const way =
        !scale_helps && trace.name == "recorded"
            ? "No loss scale cures them, they are there at every one: look for their origin with "
              "halfscope analyze. A policy that skips such steps, such as torch, keeps the weights "
              "of before."
        : trace.name == "fastai1"
            ? "At a scale of 1 or less it no longer skips: take another policy, or keep what "
              "overflows in FP32."
        : trace.name == "recorded" ? "Use a policy that skips such steps, such as torch."
                                   : "It never checks: take a smaller scale, or a policy that "
                                     "skips such steps.";
    add(PitfallKind::applied, trace.name, trace.applied_nonfinite.front(),
        fmt::format("Infinities or NaN go into the weights at {}, step {} first, and training is "
                    "lost from there on.",
                    steps_words(trace.applied_nonfinite.size()), trace.applied_nonfinite.front()),
        way);
  }

  void retries(const Trace& trace) {
    const auto worst = std::find_if(
        trace.attempts.begin(), trace.attempts.end(),
        [](const auto& step) { return step.second > policy::Nnabla::max_recursive_count; });
    if (trace.name != "nnabla" || worst == trace.attempts.end()) return;
    const double interval = policy::number_of(trace.policy, "N").value_or(2000);
    add(PitfallKind::retries, trace.name, series_.steps[worst->first],
        fmt::format("Step {} is tried {} times in vain, and each attempt halves the scale: it "
                    "falls by 2^{}.",
                    series_.steps[worst->first], worst->second, worst->second),
        fmt::format("At one doubling in {} clean steps it needs {:.0f} of them to come back, and "
                    "until then gradients underflow. Stop the run when a step is given up, and set "
                    "the scale by hand; if its gradients are NaN, look for their origin.",
                    interval + 1, worst->second * (interval + 1)));
  }

  const StepSeries& series_;
  std::vector<Pitfall>& found_;
};

}  // namespace

std::string_view name_of(PitfallKind kind) {
  constexpr std::string_view kNames[] = {
      "nan_in_model", "norm_overflow", "not_in_checkpoint", "floor",   "exception", "hysteresis",
      "dragged",      "zero",          "infinity",          "applied", "retries"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Pitfall> pitfalls(const StepSeries& series, const std::vector<Trace>& traces) {
  std::vector<Pitfall> found;
  Finder finder(series, found);
  finder.of_run();
  for (const Trace& trace : traces) finder.of_policy(trace);
  return found;
}

}  // namespace halfscope::analyzers::replay
