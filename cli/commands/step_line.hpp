// SPDX-License-Identifier: Apache-2.0
// Progress display of a training run.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

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

}  // namespace halfscope::cli::commands
