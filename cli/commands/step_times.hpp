// SPDX-License-Identifier: Apache-2.0
// Durations of a run's steps, for `halfscope simulate --times FILE`.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace halfscope::cli::commands {

class StepTimes {
 public:
  /// Called at the end of every step; the first call begins the first interval.
  void tick() { at_.push_back(std::chrono::steady_clock::now()); }

  /// Returns statistics of the seconds between the ends of consecutive steps. `steps` counts the
  /// measured intervals. The first 10 (at most half of all) are excluded, because libraries load
  /// and choose algorithms in them. Fields without a value are absent.
  nlohmann::json to_json() const;

 private:
  std::vector<std::chrono::steady_clock::time_point> at_;
};

}  // namespace halfscope::cli::commands
