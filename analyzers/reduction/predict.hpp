// SPDX-License-Identifier: Apache-2.0
// Losses of a sum over more ranks than were recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/number/format.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace halfscope::analyzers::reduction {

/// A prediction with its interval.
struct Estimate {
  double low = 0, middle = 0, high = 0;
};

struct Prediction {
  std::size_t count = 0;     ///< W, the ranks of the sum
  std::size_t recorded = 0;  ///< R, the ranks that it is predicted from
  Estimate lost;             ///< share of additions
  Estimate relative_l2;      ///< of elements that do not overflow
  Estimate overflow;         ///< share of elements
  /// The elements' means over ranks cannot be told from zero: `middle` takes them as zero, `high`
  /// as large as the data allow.
  bool noise_alone = false;
};

struct PredictOptions {
  halfscope::reduction::Order order = halfscope::reduction::Order::sequential;
  int threads = 0;
  std::uint64_t seed = 0x48616C66;
};

inline constexpr std::size_t kFewestRanks = 4;

/// Sums of `count` addends, where addends[r] are those of recorded rank r, n elements each. A model
/// of the addends (addend_model.hpp) makes ranks as the recorded ones, which are then summed and
/// rounded as they would be. The same numbers on every machine and with any number of threads.
/// Errors: std::invalid_argument for fewer than 4 ranks, lengths that differ, a format that cannot
/// accumulate, a count of 0, and if no element is finite on all ranks.
Prediction predict(Format f, std::span<const std::span<const float>> addends, std::size_t count,
                   const PredictOptions& options = {});

}  // namespace halfscope::analyzers::reduction
