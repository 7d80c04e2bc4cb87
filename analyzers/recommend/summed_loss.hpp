// SPDX-License-Identifier: Apache-2.0
// A loss that is too large for a mean over tokens: where it is their sum, gradients are as many
// times larger, and that much of FP16's range is lost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

struct SummedLoss {
  std::string log;
  double loss = 0;          ///< the median of the first ones
  std::uint64_t steps = 0;  ///< that it is of
  /// A mean of cross-entropies over classes that are guessed evenly is the logarithm of their
  /// number. As many times larger is the sum, at least.
  double times() const { return loss / kLargestMean; }
  /// ln 2^24: no vocabulary has 2^24 classes.
  static constexpr double kLargestMean = 16.64;
};

/// Of the first log in which the loss begins at more than twice kLargestMean.
std::optional<SummedLoss> summed_loss(std::span<const underflow::LogFindings> logs);

}  // namespace halfscope::analyzers::recommend
