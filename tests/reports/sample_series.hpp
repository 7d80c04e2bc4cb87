// SPDX-License-Identifier: Apache-2.0
// What the tests of policies in reports share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analyzers/replay/step_series.hpp"

namespace halfscope::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline analyzers::replay::StepSeries steps(std::size_t count, double magnitude) {
  analyzers::replay::StepSeries out;
  out.log = "log";
  for (std::size_t i = 0; i < count; ++i) {
    out.steps.push_back(static_cast<std::int64_t>(i));
    out.seen.push_back({magnitude, 0});
  }
  return out;
}

}  // namespace halfscope::test
