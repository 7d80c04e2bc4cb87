// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/may_use.hpp"

#include "analyzers/underflow/provenance.hpp"

namespace halfscope::analyzers::recommend {

std::optional<MayUse> may_use(const underflow::Analysis& analysis, const Recommendation& advice) {
  using Why = MayUse::Why;
  if (wide_range(analysis.target.format) || !underflow::runs_in_bfloat16(analysis)) {
    return std::nullopt;
  }
  if (!advice.overflow_without_cure.empty()) {
    return MayUse{Why::overflows, advice.overflow_without_cure.front()};
  }
  if (!advice.static_log2 || !advice.limited_by) return MayUse{};
  if (!advice.above_target.empty() && !advice.harmless()) {
    return MayUse{Why::flushed,
                  advice.worst_lost ? advice.worst_lost->tensor : advice.above_target.front()};
  }
  return MayUse{Why::fits, advice.limited_by->name};
}

}  // namespace halfscope::analyzers::recommend
