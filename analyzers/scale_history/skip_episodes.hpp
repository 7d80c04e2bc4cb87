// SPDX-License-Identifier: Apache-2.0
// At which loss scales steps were skipped, as far as another tool's log proves it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Steps skipped one after the other at scales that did not rise between: at each, gradients times
/// the scale overflowed, or held infinities or NaN.
struct SkipEpisode {
  double least = 1;  ///< the last one's scale, or more than that: one was skipped at this or less
  double most = 1;   ///< the first one's
  /// The steps that the one at `least` is of; one where it is known.
  std::int64_t first = 0;
  std::optional<std::int64_t> last;  ///< empty: the log ends before it tells
};

/// Those of a log, ascending. Scales are taken to be halved where a step is skipped, as every
/// scaler does whose logs are read (docs/logs.md). Steps whose loss is NaN or infinite are left
/// out.
std::vector<SkipEpisode> skip_episodes(const underflow::LogFindings& log,
                                       const TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
