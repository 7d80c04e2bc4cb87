// SPDX-License-Identifier: Apache-2.0
// Plain series of magnitudes, for tests of what a replay teaches.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/replay/step_series.hpp"

namespace halfscope::analyzers {

inline replay::StepSeries series_of(const std::vector<double>& magnitudes) {
  replay::StepSeries series;
  for (const double m : magnitudes) {
    series.steps.push_back(static_cast<std::int64_t>(series.seen.size()));
    series.seen.push_back({m, 0});
  }
  return series;
}

}  // namespace halfscope::analyzers
