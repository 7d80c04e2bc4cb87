// SPDX-License-Identifier: Apache-2.0
// The limits that no setting of a policy avoids on a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/share.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// Returns the mean share that is surely flushed at a constant scale.
double flushed_at(const StepSeries& series, double scale) {
  double sum = 0;
  for (const FlushedProfile& profile : series.flushed) {
    sum += underflow::Share{profile.at(scale), profile.of}.low();
  }
  return sum / static_cast<double>(series.flushed.size());
}

/// Returns log2 of the smallest scale that may keep the target; empty if none does.
std::optional<int> least_for(const StepSeries& series, double target) {
  for (int k = underflow::kFirstLog2Scale; k <= underflow::kLastLog2Scale; ++k) {
    if (flushed_at(series, std::ldexp(1.0, k)) <= target) return k;
  }
  return std::nullopt;
}

class Stops {
 public:
  Stops(const TunedPolicy& tuned, const StepSeries& series, double target)
      : tuned_(tuned),
        trace_(tuned.trace),
        series_(series),
        target_(target),
        limits_(policy::limits_of(tuned.trace.policy)) {}

  std::string text() {
    in_model();
    ended();
    unknown();
    too_large();
    nothing_left();
    flushed();
    return fmt::format("{}", fmt::join(sentences_, " "));
  }

 private:
  void say(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  void in_model() {
    const auto n = static_cast<std::size_t>(trace_.model_nan_skips);
    if (n == 0) return;
    say(fmt::format("{} {} infinities or NaN at every scale: no setting saves {}.", steps_words(n),
                    n == 1 ? "has" : "have", n == 1 ? "it" : "them"));
  }

  void ended() {
    if (!trace_.error) return;
    say(fmt::format("Every setting that was tried ends training, as this one at step {}: \"{}\".",
                    trace_.error->step, trace_.error->message));
  }

  /// Reports steps whose overflow is unknown.
  void unknown() {
    std::size_t partial = 0, without_scale = 0, larger = 0;
    for (const std::int64_t step : trace_.unknown) {
      const AttemptMagnitudes& seen = series_.seen[index_of(series_, step)];
      ++(seen.partial ? partial : std::isinf(seen.overflow_from) ? without_scale : larger);
    }
    const auto them = [](std::size_t count) { return count == 1 ? "it" : "them"; };
    if (larger > 0) {
      say(
          fmt::format("At {} the run overflowed at a larger scale; the log does not show how small "
                      "a scale has to be to hold {}.",
                      steps_words(larger), them(larger)));
    }
    if (without_scale > 0) {
      say(
          fmt::format("At {} the run overflowed at a scale that is not recorded; it is unknown how "
                      "small a scale has to be to hold {}.",
                      steps_words(without_scale), them(without_scale)));
    }
    if (partial > 0) {
      say(fmt::format("At {} not all magnitudes are recorded, so overflow there is unknown.",
                      steps_words(partial)));
    }
  }

  /// Reports skipped steps that a smaller scale would have held.
  void too_large() {
    double needed = INFINITY;
    std::size_t count = 0, below_floor = 0, below_all = 0;
    const double smallest = smallest_scale(trace_.policy);
    for (const std::int64_t step : trace_.skipped) {
      if (!by_scale(series_, step)) continue;
      const double power = holds(series_, step).power;
      needed = std::min(needed, power);
      ++count;
      if (power < limits_.floor) ++below_floor;
      if (power < smallest) ++below_all;
    }
    if (count == 0) return;
    if (below_floor != 0) return above_floor(below_floor, needed);
    if (below_all != 0) return below_arithmetic(below_all, needed);
    const double start = trace_.scale_at(0);
    if (limits_.whole_numbers && start == 1 && needed < 1) {
      say(fmt::format("The initial scale cannot be below 1, but {} scale of {} or less.",
                      need(count), scale_words(needed)));
    } else if (tuned_.within_target && flushed_at(series_, needed) > target_) {
      say(fmt::format("{} scale of {} or less, which flushes more than the target all the time.",
                      need(count), scale_words(needed)));
    }
    still_coming_down(needed);
  }

  static std::string need(std::size_t count) {
    return fmt::format("{} need{} a", steps_words(count), count == 1 ? "s" : "");
  }

  void above_floor(std::size_t count, double needed) {
    const std::string_view setting = policy::info_of(trace_.policy).floor;
    const std::string which = limits_.floor_is_fixed
                                  ? "which no setting lowers"
                                  : fmt::format("its {}", setting_words(trace_.policy, setting));
    say(fmt::format("{} scale of {} or less, but it cannot fall below {}, {}.", need(count),
                    scale_words(needed), scale_words(limits_.floor), which));
  }

  void below_arithmetic(std::size_t count, double needed) {
    const bool narrow = policy::info_of(trace_.policy).arithmetic == policy::Arithmetic::binary32;
    say(
        fmt::format("{} scale of {} or less, but its framework keeps the scale in {}, whose "
                    "smallest normal number is {}.",
                    need(count), scale_words(needed), narrow ? "binary32" : "binary64",
                    scale_words(smallest_scale(trace_.policy))));
  }

  /// Reports a run that ends before its scale has come down far enough.
  void still_coming_down(double needed) {
    if (trace_.skipped.empty() || trace_.skipped.back() != series_.steps.back()) return;
    if (!(trace_.final_scale > needed)) return;
    say(
        fmt::format("The run is shorter than the scale takes to come down: it is still at {} after "
                    "{}.",
                    scale_words(trace_.final_scale), steps_words(trace_.length)));
  }

  /// Returns the number of steps at which a scale surely overflows, and at which it may.
  std::pair<std::size_t, std::size_t> overflowing(double scale) const {
    std::size_t sure = 0, perhaps = 0;
    for (const AttemptMagnitudes& seen : series_.seen) {
      if (!std::isfinite(seen.max_abs) && seen.overflow_from == 0) continue;
      const OverflowVerdict verdict = judge(seen, scale);
      if (verdict == OverflowVerdict::overflow) ++sure;
      if (verdict == OverflowVerdict::unknown) ++perhaps;
    }
    return {sure, perhaps};
  }

  void nothing_left() {
    if (trace_.all_flushed.empty()) return;
    say(fmt::format(
        "At {} even the largest gradient is flushed: nothing is learned there.{}",
        steps_words(trace_.all_flushed.size()),
        series_.flushed.empty() ? " For other steps flushing is unknown without histograms." : ""));
  }

  /// Returns true if recorded zeros may be flushed values.
  bool zeros_unsure() const {
    return std::ranges::any_of(series_.flushed, [](const FlushedProfile& profile) {
      const Interval most = profile.at(INFINITY);
      return most.low != most.high;
    });
  }

  /// Reports that the scale is at times below the one that the target needs.
  void below(const std::string& takes) {
    double lowest = INFINITY;
    for (const auto& [index, scale] : trace_.scale) lowest = std::min(lowest, scale);
    const bool dragged = trace_.model_nan_skips != 0 && lowest < least_by_overflow(trace_, series_);
    if (!dragged) {
      say(fmt::format("{}, and its own is as low as {}.", takes, scale_words(lowest)));
      return;
    }
    const bool has_floor = limits_.floor > 0 || !policy::info_of(trace_.policy).floor.empty();
    say(
        fmt::format("{}: the steps whose infinities or NaN come from the model drag its own down "
                    "to {}{}.",
                    takes, scale_words(lowest), has_floor ? "" : ", as it has no floor"));
  }

  /// Reports a flushed share that is surely above the target. One that may be below it is not
  /// reported, except for zeros that may be flushed values.
  void flushed() {
    if (!trace_.mean_flushed) return;
    const auto [low, high] = *trace_.mean_flushed;
    if (low <= target_) {
      if (high > target_ && zeros_unsure()) {
        const std::string_view why =
            series_.from_buckets
                ? "The log's buckets do not show which values are zeros and which are flushed."
                : "Gradients were computed in FP16 when they were "
                  "recorded: a zero among them may be "
                  "a value that the run's own scale flushed.";
        say(
            fmt::format("{} It is unknown how many of these other settings flush; a larger scale "
                        "that never overflows flushes no more.",
                        why));
      }
      return;
    }
    const auto least = least_for(series_, target_);
    if (!least) {
      say(fmt::format("Even a scale of 2^{} flushes more than the target.",
                      underflow::kLastLog2Scale));
      return;
    }
    const double scale = std::ldexp(1.0, *least);
    const auto [sure, perhaps] = overflowing(scale);
    const std::string takes = fmt::format("Keeping it needs a scale of {}", scale_words(scale));
    if (scale > limits_.ceiling) {
      say(fmt::format("{}, and it never grows beyond {} ({}).", takes, scale_words(limits_.ceiling),
                      policy::info_of(trace_.policy).ceiling));
    } else if (sure + perhaps != 0) {
      say(fmt::format("{}, at which {} of {} {}overflow.", takes, sure + perhaps,
                      steps_words(series_.seen.size()), perhaps != 0 ? "may " : ""));
    } else if (overflowing(2 * scale) != std::pair<std::size_t, std::size_t>()) {
      say(fmt::format("{}, which leaves almost no headroom for larger gradients.", takes));
    } else {
      below(takes);
    }
  }

  const TunedPolicy& tuned_;
  const Trace& trace_;
  const StepSeries& series_;
  double target_;
  policy::Limits limits_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::string what_stops(const TunedPolicy& tuned, const StepSeries& series,
                       double target_underflow) {
  return Stops(tuned, series, target_underflow).text();
}

}  // namespace halfscope::analyzers::replay
