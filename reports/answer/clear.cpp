// SPDX-License-Identifier: Apache-2.0
// The sentence that nothing was found, limited to what the log can show.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reports/answer/answer_parts.hpp"
#include "reports/answer/formats.hpp"

namespace halfscope::reports::answer {

std::string clear_text(const analyzers::Study& study) {
  const auto tensors = study.analysis.tensors();
  const bool refused = study.advice.may_use && !study.advice.may_use->yes();
  if (study.advice.no_scale && !tensors.empty() &&
      study.advice.no_scale != analyzers::recommend::NoScale::no_gradients) {
    return "";
  }
  if (refused) return "";
  if (std::ranges::any_of(tensors, [](const auto& tensor) { return tensor.loss_scaled; })) {
    const bool bounds =
        study.advice.underflow_not_identifiable || study.advice.overflow_not_identifiable;
    return fmt::format("Nothing was found that harms training in {}{}.",
                       people_say(study.analysis.target.name),
                       bounds ? ", as far as the log shows" : "");
  }
  if (!tensors.empty()) {
    return "Nothing was found in the tensors of this log. It holds no gradients.";
  }
  const bool none = study.timelines.empty() && study.peaks.empty() && study.quantised.empty();
  return none ? "The log reports no loss scale and no skipped step either." : "";
}

}  // namespace halfscope::reports::answer
