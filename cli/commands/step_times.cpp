// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/step_times.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace halfscope::cli::commands {

nlohmann::json StepTimes::to_json() const {
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

}  // namespace halfscope::cli::commands
