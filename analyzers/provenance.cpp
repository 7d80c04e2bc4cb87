// SPDX-License-Identifier: Apache-2.0
#include "analyzers/provenance.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace halfscope::analyzers {
namespace {

/// Whether a's smallest magnitude is larger than b's.
bool coarser(Dtype a, Dtype b) {
  return format_of(a).min_quantum_exponent() > format_of(b).min_quantum_exponent();
}

/// Keeps the coarsest dtype that is known.
void keep(std::optional<Dtype>& kept, const std::optional<Dtype>& dtype) {
  if (dtype && (!kept || coarser(*dtype, *kept))) kept = dtype;
}

/// Whether a bucket reaches from zero to values that are kept without a loss scale.
bool hides_flushed(const Frame& frame, Format target) {
  const Magnitude kept = boundaries(target, 1.0, frame.scale).nonzero;
  const std::vector<Span>& spans = frame.table.spans();
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return !span.first && span.last && *span.last >= kept;
  });
}

}  // namespace

bool runs_in_bfloat16(const Analysis& analysis) {
  std::map<std::string, bool> logs;  // whether some gradient of the log was
  for (const TensorFindings& t : analysis.tensors) {
    if (!t.counted) continue;
    if (t.computed_in_fp16()) return false;
    logs[t.log] |= t.computed_dtype == Dtype::bf16;
  }
  return !logs.empty() && std::ranges::all_of(logs, [](const auto& log) { return log.second; });
}

void Provenance::add(const Frame& frame, Format target) {
  // Of steps that differ the coarsest holds: what it lost cannot be told for the sum.
  keep(source_, frame.source_dtype);
  keep(computed_, frame.computed_dtype);
  hidden_ = hidden_ || hides_flushed(frame, target);
  if (!frame.table.is_exact()) {
    all_fit_ = false;  // not known
  } else if (frame.table.exact().largest()) {
    all_fit_ = all_fit_ && frame.table.exact().fits(kBinary16);
    evidence_ = evidence_ || frame.table.exact().significant_bits() > kBfloat16.precision;
  }
}

void Provenance::tell(TensorFindings& t, Format target) const {
  t.source_dtype = source_;
  t.computed_dtype = computed_;
  t.hidden_by_buckets = hidden_;
  if (!source_ && !computed_) {  // what made zeros of them nobody knows
    t.underflow_identifiable = !hidden_;
    return;
  }
  const Dtype stored = source_.value_or(computed_.value_or(Dtype::f32));
  const bool stored_wide = format_of(stored).precision > kBinary16.precision;
  if (!t.computed_dtype) {
    t.suspected_fp16 = stored_wide && all_fit_ && evidence_;
    if (!t.suspected_fp16) t.computed_dtype = source_;
  }
  const Format computed =
      t.suspected_fp16 ? kBinary16 : format_of(t.computed_dtype.value_or(stored));
  const int finest =
      std::max(computed.min_quantum_exponent(), format_of(stored).min_quantum_exponent());
  t.underflow_identifiable = finest < target.min_quantum_exponent() && !hidden_;
}

}  // namespace halfscope::analyzers
