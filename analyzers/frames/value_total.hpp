// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// Largest number of values that the tensors of all logs may have together, and of skipped steps.
/// Each value is counted once in sums over steps, tensors, ranks and logs, so these 64-bit sums
/// stay far below 2^64.
inline constexpr std::uint64_t kMostValues = std::uint64_t{1} << 62;

/// Running totals of values and of skipped steps. Readers add to it before they add any counts, so
/// that a broken log is refused before a sum can wrap.
class ValueTotal {
 public:
  /// Adds a frame's values. Throws log::BadInput, which names `log`, the tensor and its step, if
  /// the sum is above kMostValues.
  void add(const Frame& frame, std::string_view log);
  /// Adds a number of skipped steps. Throws log::BadInput, which names `log`, if the sum is above
  /// kMostValues.
  void add_skipped(std::uint64_t steps, std::string_view log);

 private:
  std::uint64_t values_ = 0, skipped_ = 0;
};

}  // namespace halfscope::analyzers::frames
