// SPDX-License-Identifier: Apache-2.0
// The effects of each power-of-two scale around the good ones.
#include <algorithm>
#include <utility>

#include "analyzers/recommend/flushed.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/step_maxima.hpp"
#include "analyzers/underflow/lost_mass.hpp"

namespace halfscope::analyzers::recommend {
namespace {

constexpr int kMore = 4;   ///< scales beyond the range on either side
constexpr int kMost = 16;  ///< binades shown below static_scale, if the range is wider

/// Returns log2 of the first and the last scale that are shown.
std::pair<int, int> shown(const Recommendation& advice) {
  const int at = *advice.static_log2;
  const int lowest = std::clamp(advice.lowest_log2.value_or(at), at - kMost, at + kMost);
  const int first = std::min(at, lowest) - kMore;
  const int last = std::max(at + std::max(advice.asked.headroom_bits, 0), lowest) + kMore;
  return {first, last};
}

}  // namespace

std::vector<ScaleEvidence> scale_evidence(const underflow::Analysis& analysis,
                                          const Recommendation& advice,
                                          const underflow::LostMass& lost,
                                          const std::vector<LogMaxima>& maxima) {
  std::vector<ScaleEvidence> scales;
  const auto [first, last] = shown(advice);
  const std::vector<underflow::Share> flushed = flushed_at(analysis, first, last);
  for (int k = first; k <= last; ++k) {
    ScaleEvidence scale;
    scale.log2_scale = k;
    scale.flushed = flushed[static_cast<std::size_t>(k - first)].count;
    scale.of = flushed[static_cast<std::size_t>(k - first)].of;
    scale.lost = lost.at(k);
    scales.push_back(scale);
  }
  // Among several logs, the log that overflows most easily sets the bound.
  for (const LogMaxima& log : maxima) {
    for (ScaleEvidence& scale : scales) {
      const SkipBound bound = skip_bound(log.steps, scale.log2_scale);
      // An infinity in binary16 hides the value's size, so the step may overflow at any scale.
      scale.overflow_steps += bound.overflowing();
      if (scale.skip.steps == 0 || bound.high >= scale.skip.high) scale.skip = bound;
    }
  }
  return scales;
}

}  // namespace halfscope::analyzers::recommend
