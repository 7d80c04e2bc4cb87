// SPDX-License-Identifier: Apache-2.0
// Two engines that print into one log, such as the actor and the critic of reinforcement learning.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

inline constexpr std::size_t kEngines = 2;

/// Assigns lines to two engines: a message of an overflow to the engine whose scale it continues, a
/// counter by its place among those of one step. Lines come in order.
class EngineSplit {
 public:
  std::size_t of(const Overflow& overflow);
  std::size_t of(const Periodic& counter);

  /// Returns the number of messages that switch to the other engine at a scale of its own.
  std::uint64_t returns() const { return returns_; }

 private:
  std::size_t fitting(double attempted) const;

  std::array<std::optional<double>, kEngines> scale_;  // after the last message of each engine
  std::size_t last_ = 0;                               // engine of the last message
  std::uint64_t returns_ = 0;
  std::optional<std::int64_t> step_;  // the last counter's
  std::size_t place_ = 0;             // number of counters before it at its step
};

}  // namespace halfscope::analyzers::readers::console
