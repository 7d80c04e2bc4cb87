// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// The most values that the tensors of all logs may have together, and the most skipped steps.
/// Counts are 64-bit: sums over
/// steps, tensors, ranks and logs, in which each value is counted once, stay far below 2^64.
inline constexpr std::uint64_t kMostValues = std::uint64_t{1} << 62;

/// Number of values in frames, and of skipped steps, added up before anything else is. Refuses
/// counts of broken logs.
class ValueTotal {
 public:
  /// Adds a frame's values. Throws log::BadInput, which names `log`, the tensor and its step, if
  /// the sum is above kMostValues.
  void add(const Frame& frame, std::string_view log);
  /// Adds so many skipped steps. Throws log::BadInput, which names `log`, as above.
  void add_skipped(std::uint64_t steps, std::string_view log);

 private:
  std::uint64_t values_ = 0, skipped_ = 0;
};

}  // namespace halfscope::analyzers::frames
