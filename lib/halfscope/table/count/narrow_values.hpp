// SPDX-License-Identifier: Apache-2.0
// Binary32 values that are also numbers of a narrower format, counted at the speed of memory.
#pragma once

#include <array>
#include <cstdint>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// The narrow formats, the one with the fewest significant bits first.
inline constexpr std::array kNarrowFormats = {kFloat8E4M3, kBfloat16, kBinary16};

struct NarrowCounts {
  std::uint64_t total = 0;  ///< all values
  std::uint64_t zero = 0;
  std::uint64_t finite_nonzero = 0;
  /// Finite nonzero values that are numbers of kNarrowFormats[i], subnormals included.
  std::array<std::uint64_t, kNarrowFormats.size()> exact = {};
  bool constant = true;  ///< all values have the same bits

  NarrowCounts& operator+=(const NarrowCounts& other);
};

/// Counts the values of a binary32 tensor. Throws std::invalid_argument for another dtype.
NarrowCounts count_narrow_values(const TensorView& tensor);

}  // namespace halfscope
