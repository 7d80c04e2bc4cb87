// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analyzers/policy_advice.hpp"
#include "analyzers/policy_facts.hpp"
#include "analyzers/replay_loop.hpp"

namespace halfscope::analyzers {
namespace {

/// Steps of a trace that surely overflow at its last scale, from which it did not come down.
std::vector<std::int64_t> stuck_steps(const Trace& trace, const StepSeries& series) {
  std::vector<std::int64_t> steps;
  const std::size_t from = trace.scale.empty() ? 0 : trace.scale.back().first;
  for (const std::int64_t step : trace.overflow) {
    if (index_of(series, step) >= from) steps.push_back(step);
  }
  return steps;
}

class Finder {
 public:
  Finder(const StepSeries& series, std::vector<Trap>& found) : series_(series), found_(found) {}

  void of_run() {
    nan_in_model();
    unexplained();
    jumps();
    const auto run = recorded_trace(series_);
    if (!run) return;
    ends(*run);
    applied(*run);
  }

  void of_policy(const Trace& trace) {
    if (!trace.unavailable.empty()) return;
    floor(trace);
    exception(trace);
    hysteresis(trace);
    ends(trace);
    applied(trace);
    retries(trace);
  }

 private:
  void add(std::string id, std::string_view policy, std::optional<std::int64_t> step,
           std::string text) {
    found_.push_back({std::move(id), std::string(policy), step, std::move(text)});
  }

  void nan_in_model() {
    std::optional<std::int64_t> first;
    std::size_t n = 0;
    for (std::size_t i = 0; i < series_.seen.size(); ++i) {
      const Seen& seen = series_.seen[i];
      if (std::isfinite(seen.max_abs) || seen.overflow_from != 0) continue;
      if (n++ == 0) first = series_.steps[i];
    }
    if (n == 0) return;
    add("nan_in_model", "recorded", first,
        fmt::format("From step {} on, {} have infinities or NaN that no loss scale cures: they "
                    "are there at every scale. Every policy takes them for overflow and lowers "
                    "the scale in vain. Look for their origin with halfscope analyze; a lower "
                    "learning rate, clipping, or FP32 for the operation that makes them helps.",
                    *first, steps_words(n)));
  }

  void unexplained() {
    if (series_.unexplained.empty()) return;
    const auto& [index, max_abs] = series_.unexplained.front();
    const double limit = kOverflow / series_.recorded_scale[index].value_or(NAN);
    add("norm_overflow", "recorded", series_.steps[index],
        fmt::format(
            "The run skipped {} although every recorded gradient is finite and below what "
            "overflows: step {} is the first, where they reach {:.4g} and 65520 over the scale is "
            "{:.4g}. What overflowed is then not among them: the norm of all gradients where it "
            "is summed in FP16, another rank, or a parameter that is not recorded. A smaller loss "
            "scale is no cure for a norm: compute it in FP32, and record every rank and "
            "parameter.",
            steps_words(series_.unexplained.size()), series_.steps[index], max_abs, limit));
  }

  /// The largest factor by which the run's policy lets the scale grow in one step; infinite where a
  /// statistic sets it.
  double growth() const {
    double factor = 2;
    const auto policy = recorded_policy(series_);
    if (!policy) return factor;
    const policy::Info& info = policy::info_of(*policy);
    if (info.needs != policy::Needs::nonfinite) return INFINITY;
    for (const auto& [name, value] : policy::settings_of(*policy)) {
      const bool grows = name.find("factor") != name.npos || name.find("incr") != name.npos ||
                         name.find("multiplier") != name.npos;
      const auto* real = std::get_if<double>(&value);
      if (grows && real != nullptr) factor = std::max(factor, *real);
    }
    return factor;
  }

  /// Whether no factor brings a scale back from there.
  static bool lost(double scale) { return scale == 0 || !std::isfinite(scale); }

  /// The first step at which the recorded scale begins anew. Steps without one are looked across:
  /// each may have grown.
  void jumps() {
    const double factor = growth();
    if (!std::isfinite(factor)) return;
    std::optional<std::size_t> last;  // with a scale
    for (std::size_t i = 0; i < series_.recorded_scale.size(); ++i) {
      if (!series_.recorded_scale[i]) continue;
      const std::optional<std::size_t> before = std::exchange(last, i);
      if (!before || series_.retried.count(*before) != 0) continue;
      const double was = *series_.recorded_scale[*before], now = *series_.recorded_scale[i];
      const auto steps = static_cast<double>(series_.steps[i] - series_.steps[*before]);
      if (!(now > 0) || !std::isfinite(now)) continue;
      if (!lost(was) && !(now > was * std::pow(factor, steps) * 1.000001)) continue;
      tell_jump(i, was, now);
      return;
    }
  }

  void tell_jump(std::size_t index, double was, double now) {
    add("not_in_checkpoint", "recorded", series_.steps[index],
        fmt::format("The loss scale jumps from {} to {} at step {}, {}. So it looks where training "
                    "was resumed and the scaler's state was not in the checkpoint: it begins at "
                    "its initial scale again, and steps are skipped until it is down. Save and "
                    "load the scaler's state too (scaler.state_dict() in PyTorch).",
                    scale_words(was), scale_words(now), series_.steps[index],
                    lost(was) ? "where no policy comes back from"
                              : "which is more than the policy lets it grow"));
  }

  void floor(const Trace& trace) {
    if (trace.fate != Fate::floor) return;
    const std::vector<std::int64_t> steps = stuck_steps(trace, series_);
    Holds needed;
    std::optional<std::int64_t> first;
    for (const std::int64_t step : steps) {
      if (!by_scale(series_, step)) continue;
      if (!first) first = step;
      const Holds one = holds(series_, step);
      needed = {std::min(needed.power, one.power), needed.sure && one.sure};
    }
    if (!first) return;  // no scale helps: nan_in_model says so
    const std::string_view setting = policy::info_of(trace.policy).floor;
    const bool whole = policy::limits_of(trace.policy).whole_numbers;
    const double settable = whole ? std::floor(needed.power) : needed.power;
    const std::string way =
        setting.empty() ? std::string("Its floor cannot be set: take a policy without one (torch)")
                        : fmt::format("Set {} to {}{}", setting_words(trace.policy, setting),
                                      scale_words(settable), settable == 0 ? "" : " or less");
    add("floor", trace.name, first,
        fmt::format("The scale cannot fall below {}, and {} overflow there, from step {} on; a "
                    "scale of {} would hold them. They are skipped for as long as gradients are "
                    "that large. {}, or divide the loss by a constant.",
                    scale_words(trace.final_scale), steps_words(steps.size()), *first,
                    needed.text(), way));
  }

  /// Why training ended at a step, and what to do.
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
    add("exception", trace.name, trace.error->step,
        fmt::format("The framework ends training at step {}: \"{}\". {}", trace.error->step,
                    trace.error->message, way_out(trace)));
  }

  /// Skipped steps after which the scale is what it was.
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
    for (const std::int64_t step : trace.skipped) {
      const std::size_t i = index_of(series_, step);
      const double next = i + 1 < trace.length ? trace.scale_at(i + 1) : trace.final_scale;
      if (trace.scale_at(i) != next || next <= policy::limits_of(trace.policy).floor) continue;
      if (kept++ == 0) first = step;
    }
    const bool stuck = trace.fate == Fate::floor || trace.fate == Fate::infinity;
    if (kept == 0 || stuck || trace.fate == Fate::zero) return;
    const std::string way = trace.name == "deepspeed"
                                ? "consecutive_hysteresis=true, or delayed_shift=1"
                                : "hysteresis=1";
    add("hysteresis", trace.name, first,
        fmt::format("{} of {} skipped steps did not lower the scale, step {} first: {} lets "
                    "overflows pass before it does, so the next step overflows too. It is "
                    "refilled only when the scale grows, not by a clean step: once used up, a "
                    "single overflow lowers the scale. Set {}.",
                    kept, trace.skipped.size(), *first, setting_words(trace.policy, setting), way));
  }

  void ends(const Trace& trace) {
    const bool mostly_nan = trace.model_nan_skips * 2 > trace.skipped.size();
    if (trace.fate == Fate::zero) {
      add("zero", trace.name, std::nullopt,
          fmt::format("The scale fell to 0, and every gradient is 0 from then on: {} of {} skipped "
                      "steps have infinities or NaN at every scale. {}",
                      trace.model_nan_skips, trace.skipped.size(),
                      mostly_nan ? "The model makes them, and no scale cures it: stop such a run "
                                   "at the first of them, and look for their origin."
                                 : "Set a floor, or take a policy that has one."));
    }
    if (trace.fate == Fate::infinity) {
      add("infinity", trace.name, std::nullopt,
          "The scale grew to infinity and stays there: half of infinity is infinite, so every "
          "later step is skipped. The gradients are too small to ever overflow; set a largest "
          "scale where the policy has one, or take a static scale.");
    }
  }

  void applied(const Trace& trace) {
    if (trace.applied_nonfinite.empty()) return;
    const std::string_view way =
        trace.name == "fastai1"
            ? "At a scale of 1 or less it no longer skips: take another policy, or keep what "
              "overflows in FP32."
        : trace.name == "recorded" ? "Use a policy that skips such steps, such as torch."
                                   : "It never checks: take a smaller scale, or a policy that "
                                     "skips such steps.";
    add("applied", trace.name, trace.applied_nonfinite.front(),
        fmt::format("Infinities or NaN go into the weights at {}, step {} first, and training is "
                    "lost from there on. {}",
                    steps_words(trace.applied_nonfinite.size()), trace.applied_nonfinite.front(),
                    way));
  }

  void retries(const Trace& trace) {
    const auto worst = std::find_if(
        trace.attempts.begin(), trace.attempts.end(),
        [](const auto& step) { return step.second > policy::Nnabla::max_recursive_count; });
    if (trace.name != "nnabla" || worst == trace.attempts.end()) return;
    const double interval = policy::number_of(trace.policy, "N").value_or(2000);
    add("retries", trace.name, series_.steps[worst->first],
        fmt::format("Step {} is tried {} times in vain, and each attempt halves the scale: it "
                    "falls by 2^{}. At one doubling in {} clean steps it needs {:.0f} of them to "
                    "come back, and until then gradients underflow. Stop the run when a step is "
                    "given up, and set the scale by hand; if its gradients are NaN, look for their "
                    "origin.",
                    series_.steps[worst->first], worst->second, worst->second, interval + 1,
                    worst->second * (interval + 1)));
  }

  const StepSeries& series_;
  std::vector<Trap>& found_;
};

}  // namespace

std::vector<Trap> traps(const StepSeries& series, const std::vector<Trace>& traces) {
  std::vector<Trap> found;
  Finder finder(series, found);
  finder.of_run();
  for (const Trace& trace : traces) finder.of_policy(trace);
  return found;
}

}  // namespace halfscope::analyzers
