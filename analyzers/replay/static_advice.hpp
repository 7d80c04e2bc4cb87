// SPDX-License-Identifier: Apache-2.0
// The static scale that a replay shows beside the policies.
#pragma once

#include <cstdint>
#include <optional>

namespace halfscope::analyzers::replay {

/// Why a static scale that holds all recorded gradients is not recommended.
enum class NoStatic : std::uint8_t {
  unknown,      ///< nothing tells how large gradients are; there is no such scale
  diverges,     ///< underflow::diverges()
  upper_bound,  ///< infinities hide the largest gradients of every recorded step
  beyond        ///< the run ends in what no loss scale helps against; nor are dynamic settings
};

/// The static scale that is recommended, or that is not.
struct StaticAdvice {
  std::optional<int> log2;
  std::optional<NoStatic> refused;
  bool at_most = false;  ///< some gradients may have been larger than the log tells
};

}  // namespace halfscope::analyzers::replay
