// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/divergence.hpp"

#include <algorithm>

namespace halfscope::analyzers::recommend {

namespace {

/// Returns true if the log's last recorded step has infinities or NaN that come from the model.
bool ends_in_nan(const overflow::OverflowFindings& overflow, const std::string& log) {
  return std::ranges::any_of(overflow.events, [&](const overflow::OverflowEvent& event) {
    return event.log == log && !event.what_if && event.cause == overflow::Cause::nan_in_model &&
           event.to_the_end;
  });
}

}  // namespace

void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow) {
  if (!advice.static_log2 || !advice.limited_by) return;
  const int highest = *advice.highest_log2 + advice.asked.headroom_bits;
  if (!underflow::diverges(highest, ends_in_nan(overflow, advice.limited_by->log))) return;
  advice.static_log2.reset();
  advice.no_scale = NoScale::diverges;
  advice.above_target.clear();
  advice.flushed_at_recommended = {};
}

}  // namespace halfscope::analyzers::recommend
