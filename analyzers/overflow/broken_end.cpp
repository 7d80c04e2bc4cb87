// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::overflow {

using underflow::LogFindings;
using underflow::LogScalars;
using underflow::TensorFindings;

namespace {

/// Unexplained values of one tensor at a step.
struct Unexplained {
  const std::string* tensor;
  log::Role role;
  bool nan, inf;
};
/// Every recorded step of the log's tensors; most have nothing unexplained.
using Steps = std::map<std::int64_t, std::vector<Unexplained>>;

/// Returns a role's position within a step. The first broken tensor may have broken the rest.
int place_in_step(log::Role role) {
  using log::Role;
  constexpr std::array kOrder = {Role::weight,     Role::master_weight,   Role::activation,
                                 Role::loss,       Role::activation_grad, Role::local_weight_grad,
                                 Role::weight_grad};
  return static_cast<int>(std::ranges::find(kOrder, role) - kOrder.begin());
}

/// A step's loss scale: it may explain infinities, and NaN that results from them.
struct Scale {
  bool skipped = false;         ///< the log marks the step as skipped
  std::optional<double> value;  ///< empty: unknown

  bool explains_nan() const { return skipped || value.value_or(1) > 1; }
};

Scale scale_of(const LogScalars& scalars, std::int64_t step, double carried) {
  Scale scale;
  if (const log::StepScalars* const told = scalars.at(step)) {
    scale.skipped = told->found_inf.value_or(false);
  }
  scale.value = scalars.loss_scale(step);
  if (!scale.value && carried != 1) scale.value = carried;
  return scale;
}

/// Returns true for FP16 or an unknown type, in which an unknown scale may cause infinities.
bool scale_may_reach(const TensorFindings& tensor) {
  return tensor.computed_in_fp16() || (!tensor.source_dtype && !tensor.computed_dtype);
}

bool is_bfloat16(const TensorFindings& tensor) {
  return tensor.source_dtype == Dtype::bf16 || tensor.computed_dtype == Dtype::bf16;
}

Unexplained unexplained_of(const TensorFindings& tensor, const underflow::StepFindings& step,
                           const LogScalars& scalars) {
  Unexplained found{&tensor.name, tensor.role, step.counts.nan.low > 0, step.counts.inf.low > 0};
  if (is_forward(tensor.role) || underflow::before_scaling(tensor, step) || is_bfloat16(tensor)) {
    return found;
  }
  const Scale scale = scale_of(scalars, step.step, step.scale);
  const bool at_one = scale.value && *scale.value <= 1;
  const bool explained = scale.explains_nan();
  const bool reached = explained || (!at_one && scale_may_reach(tensor));
  // The difference of infinities is NaN.
  if (explained || (found.inf && reached)) found.nan = false;
  if (reached) found.inf = false;
  return found;
}

void add_tensors(const LogFindings& log, const LogScalars& scalars, Steps& steps) {
  for (const TensorFindings& tensor : log.tensors) {
    for (const underflow::StepFindings& step : tensor.per_step) {
      auto& of_step = steps[step.step];
      const Unexplained found = unexplained_of(tensor, step, scalars);
      if (found.nan || found.inf) of_step.push_back(found);
    }
  }
}

/// Peaks without counts do not show the type of their values.
void add_peaks(const LogFindings& log, const LogScalars& scalars, Steps& steps) {
  for (const frames::StepPeak& peak : log.peaks) {
    if (peak.tensor.empty()) continue;
    auto& of_step = steps[peak.step];
    const Scale scale = scale_of(scalars, peak.step, peak.loss_scale.value_or(1));
    const bool forward = is_forward(peak.role) || peak.role == log::Role::loss;
    const bool nan = std::isnan(peak.max_abs) && (forward || !scale.explains_nan());
    const bool inf = std::isinf(peak.max_abs) && forward;
    if (nan || inf) of_step.push_back({&peak.tensor, peak.role, nan, inf});
  }
}

/// Returns true for names like "Module.fc.Linear.forward.0" and "Functional.relu.0.backward"
/// (msprobe).
bool is_node(std::string_view name) {
  name = name.substr(0, name.find_last_not_of("0123456789.") + 1);
  return name.ends_with(".forward") || name.ends_with(".backward");
}

/// Returns the name of the operation whose output the tensor is
/// ("Module.fc.Linear.forward.0.output.0"), if all its inputs are finite.
std::string source_of(const LogFindings& log, const BrokenEnd& end) {
  const std::string node = end.tensor.substr(0, end.tensor.rfind(".output."));
  if (!is_node(node)) return "";
  const std::string output = node + ".output.";
  bool any = false;
  for (const frames::StepPeak& peak : log.peaks) {
    const bool input = peak.tensor.starts_with(node + ".") && !peak.tensor.starts_with(output);
    if (peak.step != end.first || !input) continue;
    if (!std::isfinite(peak.max_abs)) return "";
    any = true;
  }
  return any ? node : "";
}

std::optional<BrokenEnd> end_of(const Steps& steps, const std::string& log) {
  BrokenEnd end;
  end.log = log;
  std::set<std::string> tensors;
  const std::vector<Unexplained>* at_first = nullptr;
  for (auto at = steps.rbegin(); at != steps.rend() && !at->second.empty(); ++at) {
    if (end.steps++ == 0) end.last = at->first;
    end.first = at->first;
    at_first = &at->second;
    for (const Unexplained& found : at->second) {
      tensors.insert(*found.tensor);
      end.nan |= found.nan;
      end.inf |= found.inf;
    }
  }
  if (at_first == nullptr) return std::nullopt;
  end.tensor = *std::ranges::min_element(*at_first, {}, [](const Unexplained& found) {
                  return place_in_step(found.role);
                })->tensor;
  end.other_tensors = tensors.size() - 1;
  return end;
}

}  // namespace

std::optional<BrokenEnd> broken_end(const LogFindings& log) {
  const LogScalars scalars(log);
  Steps steps;
  add_tensors(log, scalars, steps);
  add_peaks(log, scalars, steps);
  std::optional<BrokenEnd> end = end_of(steps, log.name);
  if (end) end->source = source_of(log, *end);
  return end;
}

}  // namespace halfscope::analyzers::overflow
