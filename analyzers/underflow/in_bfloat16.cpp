// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/in_bfloat16.hpp"

#include <algorithm>
#include <numeric>

#include "analyzers/underflow/provenance.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;

namespace {

Classes all_normal(const Interval& finite_nonzero) {
  Classes classes;
  classes.normal = finite_nonzero;
  return classes;
}

/// The places of `steps` as the steps ascend.
std::vector<std::size_t> ascending(const std::vector<std::int64_t>& steps) {
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i]; });
  return order;
}

}  // namespace

StepClasses classes_of(const Frame& frame, const Target& target, double loss_scale) {
  StepClasses found;
  found.classes = classify(frame.table, target.boundaries(loss_scale, frame.scale));
  found.overflow_at_1 = loss_scale == 1.0
                            ? found.classes.overflow
                            : classify(frame.table, target.boundaries(1.0, frame.scale)).overflow;
  return found;
}

InBfloat16::InBfloat16(const Target& target, const frames::Selection& selection)
    : target_{"bfloat16", kBfloat16, target.subnormals},
      loss_scale_(selection.loss_scale),
      at_run_scale_(selection.at_run_scale) {}

std::function<void(const Frame&)> InBfloat16::begin(const std::string& log) {
  Tensors& tensors = logs_[log];
  tensors.clear();  // of one that is given twice
  return [this, &tensors](const Frame& frame) { add(frame, tensors); };
}

void InBfloat16::add(const Frame& frame, Tensors& tensors) {
  const double loss_scale = at_run_scale_ ? frame.run_scale : loss_scale_;
  const bool half = frame.source_dtype == Dtype::f16 || frame.computed_dtype == Dtype::f16;
  possible_ = possible_ && !(frame.loss_scaled && half) && exact_log2(loss_scale) &&
              exact_log2(frame.scale);
  if (!possible_) return;
  Tensor& tensor = tensors[frame.name];
  const StepClasses found = classes_of(frame, target_, loss_scale);
  const bool usual = found.classes == all_normal(frame.table.finite_nonzero()) &&
                     found.overflow_at_1 == Interval();
  if (!usual) tensor.unusual.emplace(tensor.steps.size(), found);
  tensor.steps.push_back(frame.step);
  tensor.hidden = tensor.hidden || hides_flushed(frame, target_.format);
}

const InBfloat16::Tensor* InBfloat16::find(const TensorFindings& tensor) const {
  const auto tensors = logs_.find(tensor.log);
  if (tensors == logs_.end()) return nullptr;
  const auto found = tensors->second.find(tensor.name);
  const bool same =
      found != tensors->second.end() && found->second.steps.size() == tensor.per_step.size();
  return same ? &found->second : nullptr;
}

void InBfloat16::judge(TensorFindings& tensor, const Tensor& seen) const {
  const std::vector<std::size_t> order = ascending(seen.steps);  // as those of the tensor
  tensor.counts.classes = {};
  for (std::size_t i = 0; i < order.size(); ++i) {
    StepFindings& step = tensor.per_step[i];
    const auto unusual = seen.unusual.find(order[i]);
    const StepClasses found = unusual != seen.unusual.end()
                                  ? unusual->second
                                  : StepClasses{all_normal(step.counts.finite_nonzero), {}};
    step.counts.classes = found.classes;
    step.overflow_at_1 = found.overflow_at_1;
    tensor.counts.classes += found.classes;
  }
  tensor.hidden_by_buckets = seen.hidden;
  judge_zeros(tensor, tensor.counts.zero.high != 0, target_.format);
}

bool InBfloat16::judge(Analysis& analysis) const {
  if (!possible_) return false;
  const auto is_known = [&](const TensorFindings& tensor) { return find(tensor) != nullptr; };
  if (!std::ranges::all_of(analysis.tensors(), is_known)) return false;
  analysis.target = target_;
  for (LogFindings& log : analysis.logs) {
    for (TensorFindings& tensor : log.tensors) judge(tensor, *find(tensor));
  }
  return true;
}

}  // namespace halfscope::analyzers::underflow
