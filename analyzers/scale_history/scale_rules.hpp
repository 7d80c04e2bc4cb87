// SPDX-License-Identifier: Apache-2.0
// Rules of dynamic loss scales that several answers share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Clean steps after which a scale grows: what PyTorch (2000) and DeepSpeed, Megatron-LM and
/// MindSpore (1000) have.
inline constexpr std::uint64_t kUsualWindow = 1000;

/// The share of steps that growth skips at the most: two in 100, with a hysteresis of 2.
inline constexpr double kMostToGrowth = 0.02;

/// Whether skipped steps may leave a scale as it was because it is the least allowed: it is the
/// least of the run, and no floor is as high as this.
inline bool may_be_floor(double scale, const TimelineFacts& facts) {
  constexpr double kHighestFloor = 1024;
  return scale <= kHighestFloor && scale == facts.scale_least;
}

/// How often a scale above 0 was halved on its way from one to another.
inline double halvings_between(double from, double to) {
  return std::log2(std::min(from / to, std::numeric_limits<double>::max()));
}

}  // namespace halfscope::analyzers::scale_history
