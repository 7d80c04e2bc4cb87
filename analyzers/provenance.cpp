// SPDX-License-Identifier: Apache-2.0
#include "analyzers/provenance.hpp"

#include <algorithm>

namespace halfscope::analyzers {
namespace {

/// Whether a's smallest magnitude is larger than b's.
bool coarser(Dtype a, Dtype b) {
  return format_of(a).min_quantum_exponent() > format_of(b).min_quantum_exponent();
}

}  // namespace

void Provenance::add(const Frame& frame) {
  // Of steps that differ the coarsest holds: what it lost cannot be told for the sum.
  if (!any_ || coarser(frame.source_dtype, source_)) source_ = frame.source_dtype;
  if (frame.computed_dtype && (!computed_ || coarser(*frame.computed_dtype, *computed_))) {
    computed_ = frame.computed_dtype;
  }
  any_ = true;
  if (frame.table.largest()) {
    all_fit_ = all_fit_ && frame.table.fits(kBinary16);
    evidence_ = evidence_ || frame.table.significant_bits() > kBfloat16.precision;
  }
}

void Provenance::tell(TensorFindings& t, Format target) const {
  t.source_dtype = source_;
  t.computed_dtype = computed_;
  const bool stored_wide = format_of(source_).precision > kBinary16.precision;
  if (!t.computed_dtype) {
    t.suspected_fp16 = stored_wide && all_fit_ && evidence_;
    if (!t.suspected_fp16) t.computed_dtype = source_;
  }
  const Format computed =
      t.suspected_fp16 ? kBinary16 : format_of(t.computed_dtype.value_or(source_));
  const int finest =
      std::max(computed.min_quantum_exponent(), format_of(source_).min_quantum_exponent());
  t.underflow_identifiable = finest < target.min_quantum_exponent();
}

}  // namespace halfscope::analyzers
