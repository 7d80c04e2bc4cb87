// SPDX-License-Identifier: Apache-2.0
// Weight gradients that a step adds up over its microbatches: what FP16 holds of them. Parameters
// in FP32 have sums in FP32, also under autocast: FP16 holds the parts.
// docs/numerics/statistics.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::frames {

/// Whether a scalar is the largest magnitude of one microbatch, before it is added to others.
bool is_microbatch(std::string_view tag, log::Role role);

/// What the values of microbatches carry, where the manifest says whether gradients are scaled; 0
/// where the step does not tell its scale.
inline double microbatch_scale(const log::StepScalars& scalars, bool scaled) {
  return scaled ? scalars.loss_scale.value_or(0) : 1;
}

/// The largest over the weight gradients of a step's microbatches, as recorded; empty where the
/// scalars tell none. Infinity and NaN are themselves.
std::optional<double> largest_part(const log::StepScalars& scalars);

/// What a log's weight gradients are added up in, by the type that holds them.
class SumFormat {
 public:
  void add(std::optional<Dtype> source) { (source == Dtype::f32 ? fp32_ : other_) = true; }
  bool is_fp32() const { return fp32_ && !other_; }

 private:
  bool fp32_ = false, other_ = false;
};

}  // namespace halfscope::analyzers::frames
