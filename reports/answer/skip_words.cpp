// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/skip_words.hpp"

#include <fmt/format.h>

#include <cmath>

namespace halfscope::reports::answer {

std::string fitted_text(const analyzers::recommend::SkipRisk& risk) {
  // A hundred steps are the least that a tail is fitted to: no trend is told beyond them.
  const double per_100 = 100 * std::abs(risk.trend);
  const std::string trend =
      per_100 < 0.005 ? ""
                      : fmt::format(" (the largest magnitudes {} by {:.2f} binades in 100 steps)",
                                    risk.trend > 0 ? "grow" : "shrink", per_100);
  return "an extreme-value fit, for a step like the last one recorded" + trend;
}

}  // namespace halfscope::reports::answer
