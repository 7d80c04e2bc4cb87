// SPDX-License-Identifier: Apache-2.0
// The loops over a block of elements. Internal to reduction/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/reduction/error.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::reduction {

/// The loops' n is a multiple of this; of elements beyond the last one the addends are zeros.
inline constexpr std::size_t kPad = 16;

/// The state of each element of a block while its addends are summed.
struct BlockState {
  template <class T>
  using Column = std::array<T, kBlock>;

  alignas(64) Column<double> high, low;  ///< the exact sum, as a sum of two
  alignas(64) Column<std::uint32_t> lost, flushed, nonfinite;
};

/// Counts and sums of a block. Sums go over eight lanes, element i into lane i modulo 8, so that
/// their bits do not depend on the vectors of the processor.
struct BlockFacts {
  std::uint64_t elements = 0, flushed = 0, lost = 0, overflow = 0;
  Errors errors;
};

/// The addends as they came, and as rounded to the format.
void take_addends(const float* given, const float* taken, std::size_t n, BlockState& state);
/// out = a + b in binary32.
void add_values(const float* a, const float* b, float* out, std::size_t n);
/// out: a + b, rounded to the format.
void count_additions(const float* a, const float* b, const float* out, std::size_t n,
                     BlockState& state);
BlockFacts finish(const float* results, std::size_t n, const UlpRule& rule,
                  const BlockState& state);

}  // namespace halfscope::reduction
