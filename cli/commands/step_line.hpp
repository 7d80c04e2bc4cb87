// SPDX-License-Identifier: Apache-2.0
// Progress display of a training run, and the durations of its steps.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "cli/options/notes.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::commands {

/// A status line on stderr: step, loss, scale, time left. Not shown if stderr is no terminal.
class StepLine {
 public:
  explicit StepLine(std::int64_t steps) : steps_(steps), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~StepLine() { clear(); }
  StepLine(const StepLine&) = delete;
  StepLine& operator=(const StepLine&) = delete;

  void show(const sim::training::StepResult& step) {
    const auto now = Clock::now();
    ++done_;
    if (!terminal_ || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    visible_ = true;
    const double seconds = std::max(1e-3, std::chrono::duration<double>(now - start_).count());
    const double rate = static_cast<double>(done_) / seconds;
    options::write_error(
        fmt::format("\r\x1b[Kstep {} of {}  loss {:.4g}  scale {:g}  {:.1f} steps/s  {:.0f} s left",
                    step.step + 1, steps_, step.loss, step.scale, rate,
                    static_cast<double>(steps_ - step.step - 1) / rate));
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  void clear() const {
    if (visible_) options::write_error("\r\x1b[K");
  }

  std::int64_t steps_, done_ = 0;
  bool terminal_, visible_ = false;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

/// Durations of a run's steps, for `halfscope simulate --times FILE`.
class StepTimes {
 public:
  /// Called at the end of every step; the first call begins the first interval.
  void tick() { at_.push_back(std::chrono::steady_clock::now()); }

  /// Returns statistics of the seconds between the ends of consecutive steps. `steps` counts the
  /// measured intervals. The first 10 (at most half of all) are excluded, because libraries load
  /// and choose algorithms in them. Fields without a value are absent.
  nlohmann::json to_json() const {
    constexpr std::size_t kWarmUp = 10;
    std::vector<double> seconds;
    for (std::size_t i = 1; i < at_.size(); ++i) {
      seconds.push_back(std::chrono::duration<double>(at_[i] - at_[i - 1]).count());
    }
    const std::size_t left_out = std::min(kWarmUp, seconds.size() / 2);
    seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(left_out));
    nlohmann::json all = {{"steps", seconds.size()}, {"left_out", left_out}};
    if (seconds.empty()) return all;
    std::ranges::sort(seconds);
    all["mean_seconds"] = std::reduce(seconds.begin(), seconds.end()) / double(seconds.size());
    all["median_seconds"] = seconds[seconds.size() / 2];
    all["least_seconds"] = seconds.front();
    all["most_seconds"] = seconds.back();
    return all;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> at_;
};

}  // namespace halfscope::cli::commands
