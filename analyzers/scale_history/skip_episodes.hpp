// SPDX-License-Identifier: Apache-2.0
// The loss scales at which steps were skipped, as far as another tool's log
// proves them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Steps skipped one after the other at scales that did not rise: at each,
/// gradients times the scale overflowed, or held infinities or NaN.
struct SkipEpisode {
  double least = 1;  ///< a step was skipped at this scale or a smaller one: the last one's
  double most = 1;   ///< the first one's
  /// The first and last step that the one at `least` may be; one step if it is
  /// known.
  std::int64_t first = 0;
  std::optional<std::int64_t> last;  ///< empty: the log ends before it says
};

/// The episodes of a log, ascending, without steps whose loss is NaN or
/// infinite. Each skipped step is taken to halve the scale, as in every scaler
/// whose logs are read (docs/logs.md).
std::vector<SkipEpisode> skip_episodes(const underflow::LogFindings& log,
                                       const TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
