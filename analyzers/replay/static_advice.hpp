// SPDX-License-Identifier: Apache-2.0
// The static scale that is shown next to the policies.
#pragma once

#include <cstdint>
#include <optional>

namespace halfscope::analyzers::replay {

/// Why a static scale that holds all recorded gradients is not recommended.
enum class NoStatic : std::uint8_t {
  unknown,      ///< the size of gradients is unknown; there is no such scale
  diverges,     ///< underflow::diverges()
  upper_bound,  ///< infinities hide the largest gradients of every recorded step
  beyond        ///< the run ends in a failure that neither static nor dynamic scales prevent
};

/// A static scale, with the reason if it is not recommended.
struct StaticAdvice {
  std::optional<int> log2;
  std::optional<NoStatic> refused;
  bool at_most = false;  ///< some gradients may have been larger than recorded
};

}  // namespace halfscope::analyzers::replay
