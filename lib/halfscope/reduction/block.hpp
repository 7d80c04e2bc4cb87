// SPDX-License-Identifier: Apache-2.0
// The loops over a block of elements. Internal to reduction/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/reduction/error.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::reduction {

/// n is a multiple of this in all loops; the addends of elements beyond the last one are zeros.
inline constexpr std::size_t kPad = 16;

/// The state of each element of a block while its addends are summed.
struct BlockState {
  template <class T>
  using Column = std::array<T, kBlock>;

  alignas(64) Column<double> high, low;  ///< the exact sum of each element is high + low
  alignas(64) Column<std::uint32_t> lost, flushed, nonfinite;
};

/// Counts and sums of a block. Each sum is computed in eight lanes, element i in lane i modulo 8,
/// so that its bits do not depend on the processor's vector length.
struct BlockFacts {
  std::uint64_t elements = 0, flushed = 0, lost = 0, overflow = 0;
  Errors errors;
};

/// Adds an addend of each element to the state: `given` unrounded, `taken` rounded to the format.
void take_addends(const float* given, const float* taken, std::size_t n, BlockState& state);
/// Sets out = a + b in binary32.
void add_values(const float* a, const float* b, float* out, std::size_t n);
/// Counts lost additions; `out` is a + b rounded to the format.
void count_additions(const float* a, const float* b, const float* out, std::size_t n,
                     BlockState& state);
BlockFacts finish(const float* results, std::size_t n, const UlpRule& rule,
                  const BlockState& state);

}  // namespace halfscope::reduction
