// SPDX-License-Identifier: Apache-2.0
// Predicts the losses of a sum over more ranks than were recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/number/format.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::analyzers::reduction {

/// A predicted value with its interval.
struct Estimate {
  double low = 0, middle = 0, high = 0;
};

struct Prediction {
  std::size_t count = 0;     ///< W, the number of ranks of the sum
  std::size_t recorded = 0;  ///< R, the number of recorded ranks
  Estimate lost;             ///< share of additions that are lost
  Estimate relative_l2;      ///< over elements that do not overflow
  Estimate overflow;         ///< share of elements that overflow
  /// The elements' means over ranks do not differ significantly from zero: `middle` assumes zero,
  /// `high` the largest means that the data allow.
  bool noise_alone = false;
};

struct PredictOptions {
  halfscope::reduction::Order order = halfscope::reduction::Order::sequential;
  int threads = 0;
  std::uint64_t seed = 0x48616C66;
};

inline constexpr std::size_t kFewestRanks = 4;

/// Predicts sums of `count` addends. addends[r]: the n elements of recorded rank r. A model of the
/// addends (addend_model.hpp) simulates ranks like the recorded ones, which are then summed and
/// rounded. The result is the same on every machine and with any number of threads. Throws
/// std::invalid_argument for fewer than 4 ranks, lengths that differ, a format that cannot
/// accumulate, a count of 0, and if no element is finite on all ranks.
Prediction predict(Format f, std::span<const std::span<const float>> addends, std::size_t count,
                   const PredictOptions& options = {});

}  // namespace halfscope::analyzers::reduction
