// SPDX-License-Identifier: Apache-2.0
// How long the steps of a run take, for `halfscope simulate --times FILE`.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace halfscope::cli::commands {

class StepTimes {
 public:
  /// Called at the end of every step; the first call begins the first interval.
  void tick() { at_.push_back(std::chrono::steady_clock::now()); }

  /// Seconds from one step's end to the next: `steps` of them, after the first ones (10, or half of
  /// few) have been left out, in which libraries load and choose. Fields without a value are
  /// absent.
  nlohmann::json to_json() const;

 private:
  std::vector<std::chrono::steady_clock::time_point> at_;
};

}  // namespace halfscope::cli::commands
