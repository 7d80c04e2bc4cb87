// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace halfscope::analyzers::recommend {

std::optional<SummedLoss> summed_loss(std::span<const underflow::LogFindings> logs) {
  constexpr std::size_t kFirst = 10;  // before training has changed the loss much
  for (const underflow::LogFindings& log : logs) {
    std::vector<double> losses;
    for (const log::StepScalars& step : log.scalars) {
      if (losses.size() == kFirst) break;
      if (step.loss && std::isfinite(*step.loss)) losses.push_back(*step.loss);
    }
    if (losses.empty()) continue;
    const auto middle = losses.begin() + static_cast<std::ptrdiff_t>(losses.size() / 2);
    std::ranges::nth_element(losses, middle);
    if (*middle <= 2 * SummedLoss::kLargestMean) continue;
    return SummedLoss{log.name, *middle, losses.size()};
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::recommend
