// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json_moments.hpp"

#include <array>
#include <string_view>

#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using namespace analyzers::weights;

Json to_json(const MomentReplay& found) {
  Json to = {{"log", found.log},
             {"steps", found.steps},
             {"gradients", found.gradients},
             {"first_step", found.first_step},
             {"last_step", found.last_step},
             {"from_state", found.from_state},
             {"betas", {found.beta1, found.beta2}},
             {"tensors", found.tensors},
             {"all_elements", found.all_elements},
             {"elements", found.elements},
             {"nonfinite", found.nonfinite},
             {"limit", found.limit}};
  constexpr std::array<std::string_view, 4> kMeasures = {"second", "step_first", "step_second",
                                                         "step_both"};  // by MomentMeasure
  constexpr std::array<std::string_view, 3> kFits = {"fits", "unclear", "fails"};  // by MomentFit
  for (const StoredMoments& stored : found.stored) {
    Json one = {{"format", stored.storage.name},
                {"rounding", stored.storage.stochastic ? "stochastic" : "nearest"}};
    for (std::size_t k = 0; k < kMeasures.size(); ++k) {
      const MomentShift& shift = stored.shifts[k];
      Json part = {{"mean", shift.mean}, {"error", number_json(shift.error)}};
      if (k != of_second) part["fits"] = kFits[std::size_t(fit_of(shift, found.limit))];
      one[std::string(kMeasures[k])] = std::move(part);
    }
    one["positive"] = stored.positive;
    one["stalled"] = stored.stalled;
    one["vanished"] = stored.vanished;
    to["stored"].push_back(std::move(one));
  }
  return to;
}

}  // namespace halfscope::reports::exports
