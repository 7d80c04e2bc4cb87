// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/in_bfloat16.hpp"

#include "analyzers/underflow/provenance.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;

namespace {

Target bfloat16(const Target& target) { return {"bfloat16", kBfloat16, target.subnormals}; }

StepClasses all_normal(const Interval& finite_nonzero) {
  StepClasses usual;
  usual.classes.normal = finite_nonzero;
  return usual;
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

std::optional<StepClasses> unusual_in_bfloat16(const Frame& frame, const Target& target,
                                               double loss_scale) {
  const StepClasses found = classes_of(frame, bfloat16(target), loss_scale);
  const bool usual = found == all_normal(frame.table.finite_nonzero());
  return usual ? std::nullopt : std::optional(found);
}

bool may_judge_in_bfloat16(const Frame& frame, double loss_scale) {
  const bool half = frame.source_dtype == Dtype::f16 || frame.computed_dtype == Dtype::f16;
  return !(frame.loss_scaled && half) && exact_log2(loss_scale) && exact_log2(frame.scale);
}

namespace {

void judge(TensorFindings& tensor, const Target& target) {
  tensor.counts.classes = {};
  tensor.per_step.change([&](StepFindings& step) {
    const StepClasses found = step.in_bfloat16.value_or(all_normal(step.counts.finite_nonzero));
    step.counts.classes = found.classes;
    step.overflow_at_1 = found.overflow_at_1;
    tensor.counts.classes += found.classes;
  });
  tensor.hidden_by_buckets = tensor.hidden_in_bfloat16;
  judge_zeros(tensor, tensor.counts.zero.high != 0, target.format);
}

}  // namespace

bool judge_in_bfloat16(Analysis& analysis) {
  if (!analysis.known_in_bfloat16) return false;
  analysis.target = bfloat16(analysis.target);
  for (LogFindings& log : analysis.logs) {
    for (TensorFindings& tensor : log.tensors) judge(tensor, analysis.target);
  }
  return true;
}

}  // namespace halfscope::analyzers::underflow
