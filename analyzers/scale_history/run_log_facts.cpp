// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/run_log_facts.hpp"

#include <algorithm>

namespace halfscope::analyzers::scale_history {

using underflow::Analysis;

std::vector<Analysis> run_log_scalars(const Analysis& analysis) {
  std::vector<Analysis> all;
  for (const auto& of_log : analysis.manifests) {
    const std::string& log = of_log.first;
    Analysis alone;
    alone.logs = {log};
    alone.kinds = {{log, frames::LogKind{"run log", {}}}};
    std::ranges::copy_if(analysis.scalars, std::back_inserter(alone.scalars),
                         [&](const auto& entry) { return entry.first == log; });
    if (!alone.scalars.empty()) all.push_back(std::move(alone));
  }
  return all;
}

bool skips_at_static_scale(const TimelineFacts& facts) {
  return facts.in_vain && facts.changes.empty() && facts.scale_last.value_or(1) > 1 &&
         !facts.ended_at_minimum;
}

}  // namespace halfscope::analyzers::scale_history
