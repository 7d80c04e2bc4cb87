// SPDX-License-Identifier: Apache-2.0
// Detects a loss that is a sum over tokens instead of their mean. Gradients are then larger by the
// number of tokens, and FP16 loses that much of its range.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

struct SummedLoss {
  std::string log;
  double loss = 0;          ///< median of the log's first losses
  std::uint64_t steps = 0;  ///< number of these losses
  /// Returns how many times larger the loss is than a mean can be, at least. A mean cross-entropy
  /// of evenly guessed classes is the logarithm of their number.
  double times() const { return loss / kLargestMean; }
  /// ln 2^24: no vocabulary has 2^24 classes.
  static constexpr double kLargestMean = 16.64;
};

/// Returns the first log whose loss begins above twice kLargestMean; empty if there is none.
std::optional<SummedLoss> summed_loss(std::span<const underflow::LogFindings> logs);

}  // namespace halfscope::analyzers::recommend
