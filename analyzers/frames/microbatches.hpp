// SPDX-License-Identifier: Apache-2.0
// Weight gradients that a step adds up over its microbatches, and which of these values FP16 holds.
// Gradients of FP32 parameters are added up in FP32, also under autocast: then FP16 holds only the
// gradients of single microbatches. docs/numerics/statistics.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::frames {

/// Returns true if a scalar is the largest magnitude of one microbatch, before accumulation.
bool is_microbatch(std::string_view tag, log::Role role);

/// Returns the loss scale in the gradients of microbatches: 1 if `scaled` (the manifest's statement
/// about gradients) is false, 0 if the step's scale is unknown.
inline double microbatch_scale(const log::StepScalars& scalars, bool scaled) {
  return scaled ? scalars.loss_scale.value_or(0) : 1;
}

/// Returns the largest recorded magnitude of weight gradients in any single microbatch of a step;
/// empty if the scalars have none. Infinity and NaN are returned unchanged.
std::optional<double> largest_part(const log::StepScalars& scalars);

/// Finds the type in which a log's weight gradients are accumulated.
class SumFormat {
 public:
  void add(std::optional<Dtype> source) { (source == Dtype::f32 ? fp32_ : other_) = true; }
  bool is_fp32() const { return fp32_ && !other_; }

 private:
  bool fp32_ = false, other_ = false;
};

}  // namespace halfscope::analyzers::frames
