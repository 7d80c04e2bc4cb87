// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_engines.hpp"

#include <utility>

namespace halfscope::analyzers::readers::console {

/// Returns the engine whose message is tried at a scale: at its own scale, of two the one that did
/// not print last; else one without a scale; else the one that grew least; else the last one.
std::size_t EngineSplit::fitting(double attempted) const {
  const auto fit = [&](std::size_t engine) -> std::pair<int, double> {
    const auto& scale = scale_[engine];
    if (scale == attempted) return {3, engine == last_ ? 0 : 1};
    if (!scale) return {2, 0};
    return *scale < attempted ? std::pair(1, *scale) : std::pair(0, engine == last_ ? 1.0 : 0.0);
  };
  return fit(0) < fit(1) ? 1 : 0;
}

std::size_t EngineSplit::of(const Overflow& overflow) {
  if (!overflow.attempted || !overflow.next) return last_;
  const std::size_t engine = fitting(*overflow.attempted);
  const bool at_own_scale = scale_[engine] == overflow.attempted && scale_[0] != scale_[1];
  returns_ += engine != last_ && at_own_scale ? 1 : 0;
  scale_[engine] = overflow.next;
  return last_ = engine;
}

std::size_t EngineSplit::of(const Periodic& counter) {
  place_ = step_ == counter.steps ? (place_ + 1) % kEngines : 0;
  step_ = counter.steps;
  return place_;
}

}  // namespace halfscope::analyzers::readers::console
