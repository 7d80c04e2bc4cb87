// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors that have no counts, as JSON.
#include <cmath>

#include "analyzers/underflow/tensor_peaks.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::frames::StepPeak;
using analyzers::underflow::TensorPeaks;

Json bounds_json(std::optional<double> low, std::optional<double> high) {
  return low ? Json::array({number_json(low), number_json(high)}) : number_json(high);
}

Json step_json(const StepPeak& peak) {
  Json to;
  to["step"] = peak.step;
  to["max_abs"] = bounds_json(peak.at_least, peak.max_abs);
  if (std::isnan(peak.max_abs)) to["nan"] = true;
  if (std::isinf(peak.max_abs)) to["inf"] = true;
  if (peak.min_abs_nonzero) to["min_abs_nonzero_at_least"] = number_json(peak.min_abs_nonzero);
  return to;
}

Json peaks_json(const TensorPeaks& t) {
  Json to;
  to["log"] = t.log;
  to["name"] = t.name;
  to["role"] = log::name_of(t.role);
  to["max_abs"] = bounds_json(t.max_abs_at_least, t.max_abs);
  if (t.max_abs) to["max_abs_step"] = t.max_step;
  if (t.min_abs_nonzero) to["min_abs_nonzero_at_least"] = number_json(t.min_abs_nonzero);
  to["nan_steps"] = t.nan_steps;
  to["inf_steps"] = t.inf_steps;
  to["at_scale"] = t.at_scale;
  to["overflows"] = analyzers::underflow::name_of(t.overflows);
  to["flushes"] = analyzers::underflow::name_of(t.flushes);
  to["all_flushed"] = analyzers::underflow::name_of(t.all_flushed);
  to["per_step"] = Json::array();
  for (const StepPeak& peak : t.steps) to["per_step"].push_back(step_json(peak));
  return to;
}

}  // namespace

void put_peaks(Json& to, const std::vector<TensorPeaks>& peaks) {
  for (const TensorPeaks& t : peaks) to["peaks"].push_back(peaks_json(t));
}

}  // namespace halfscope::reports::exports
