// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/provenance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace halfscope::analyzers::underflow {

using frames::Frame;

namespace {

/// Returns true if a's smallest magnitude is larger than b's.
bool coarser(Dtype a, Dtype b) {
  return format_of(a).min_quantum_exponent() > format_of(b).min_quantum_exponent();
}

/// Keeps the coarser of the two types; an empty one is unknown.
void keep(std::optional<Dtype>& kept, const std::optional<Dtype>& dtype) {
  if (dtype && (!kept || coarser(*dtype, *kept))) kept = dtype;
}

Target bfloat16(const Target& target) { return {"bfloat16", kBfloat16, target.subnormals}; }

StepClasses all_normal(const Interval& finite_nonzero) {
  StepClasses usual;
  usual.classes.normal = finite_nonzero;
  return usual;
}

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

bool hides_flushed(const Frame& frame, Format target) {
  const std::vector<Span>& spans = frame.table.spans();
  if (spans.empty()) return false;
  const Magnitude kept = boundaries(target, 1.0, frame.scale).nonzero;
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return !span.first && span.last && *span.last >= kept;
  });
}

void judge_zeros(TensorFindings& t, bool zeros, Format target) {
  if (t.source_dtype || t.computed_dtype) {  // else the source of its zeros is unknown
    const Dtype stored = t.source_dtype ? *t.source_dtype : *t.computed_dtype;
    const Format computed =
        t.suspected_fp16 ? kBinary16 : format_of(t.computed_dtype.value_or(stored));
    const int finest =
        std::max(computed.min_quantum_exponent(), format_of(stored).min_quantum_exponent());
    t.zeros_may_be_flushed = finest >= target.min_quantum_exponent();
  }
  t.underflow_identifiable = !(t.zeros_may_be_flushed && zeros) && !t.hidden_by_buckets;
}

void Bfloat16Run::add(const TensorFindings& tensor) {
  half_ = half_ || (tensor.loss_scaled && tensor.computed_in_fp16());
  bfloat16_ = bfloat16_ || (tensor.loss_scaled && tensor.computed_dtype == Dtype::bf16);
}

bool runs_in_bfloat16(const Analysis& analysis) {
  bool any = false;
  for (const LogFindings& log : analysis.logs) {
    Bfloat16Run run;
    for (const TensorFindings& t : log.tensors) run.add(t);
    if (std::ranges::none_of(log.tensors, &TensorFindings::loss_scaled)) continue;
    if (!run.is_one()) return false;
    any = true;
  }
  return any;
}

void Provenance::add(const Frame& frame, Format target) {
  // If steps differ, the coarsest type is kept: its losses cannot be separated from the sum.
  keep(source_, frame.source_dtype);
  keep(computed_, frame.computed_dtype);
  zeros_ = zeros_ || frame.table.zero().high != 0;
  hidden_ = hidden_ || hides_flushed(frame, target);
  look_for_binary16(frame);
}

void Provenance::look_for_binary16(const Frame& frame) {
  if (!frame.table.is_exact()) all_fit_ = false;  // unknown
  if (!all_fit_ || !frame.table.exact().largest()) return;
  const BinadeTable& table = frame.table.exact();
  all_fit_ = table.fits(kBinary16);
  if (!all_fit_) return;
  no_bfloat16_ = no_bfloat16_ || table.significant_bits() > kBfloat16.precision;
  no_grid_ = no_grid_ || table.largest()->exponent - *table.lowest_bit() >= kBinary16.precision;
  for (const BinadeTable::Row& row : table.rows()) {
    // A constant under a changing loss scale is one value.
    const int unscaled = row.exponent - std::ilogb(frame.scale);
    // Segment 0 contains the powers of two.
    for (std::uint32_t i = 1; i < row.segments.size(); ++i) {
      if (differ_ == kDifferentValues) return;
      if (row.segments[i] == 0) continue;
      const std::pair value(unscaled, i);
      const auto end = different_.begin() + differ_;
      if (std::find(different_.begin(), end, value) == end) different_[differ_++] = value;
    }
  }
}

bool Provenance::looks_like_binary16() const {
  return all_fit_ && no_bfloat16_ && no_grid_ && differ_ == kDifferentValues;
}

void Provenance::tell(TensorFindings& t, Format target) const {
  t.source_dtype = source_;
  t.computed_dtype = computed_;
  t.hidden_by_buckets = hidden_;
  if (source_ && !computed_) {
    const bool stored_wide = format_of(*source_).precision > kBinary16.precision;
    t.suspected_fp16 = stored_wide && looks_like_binary16();
    if (!t.suspected_fp16) t.computed_dtype = source_;
  }
  judge_zeros(t, zeros_, target);
}

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

bool judge_in_bfloat16(Analysis& analysis) {
  if (!analysis.known_in_bfloat16) return false;
  analysis.target = bfloat16(analysis.target);
  for (LogFindings& log : analysis.logs) {
    for (TensorFindings& tensor : log.tensors) judge(tensor, analysis.target);
  }
  return true;
}

}  // namespace halfscope::analyzers::underflow
