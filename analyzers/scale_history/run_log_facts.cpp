// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/run_log_facts.hpp"

#include <optional>

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::scale_history {

std::optional<TimelineFacts> run_log_facts(const underflow::LogFindings& log) {
  if (!log.manifest || log.scalars.empty()) return std::nullopt;
  underflow::LogFindings alone;
  alone.name = log.name;
  alone.kinds = {frames::LogKind{"run log", {}}};
  alone.scalars = log.scalars;
  for (log::StepScalars& scalars : alone.scalars) {
    std::optional<double>& scale = scalars.loss_scale;
    if (scale && !readers::common::can_be_scale(*scale)) scale.reset();
  }
  return timeline_facts(alone);
}

}  // namespace halfscope::analyzers::scale_history
