// SPDX-License-Identifier: Apache-2.0
// Where the limits of a format lie among unscaled magnitudes, once values are multiplied by a
// scale.
#pragma once

#include <array>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::charts {

/// One limit: its place on a log2 axis of unscaled magnitudes, and how it is written ("2^-25",
/// "65520/2^10").
struct Limit {
  double position = 0;
  std::string label;
};

struct Limits {
  Limit zero;       ///< at and below it a value becomes zero
  Limit subnormal;  ///< below it subnormal
  Limit overflow;   ///< from here on a value overflows: half an ulp above the largest finite one
};

/// Where subnormals are flushed, zero reaches up to the smallest normal.
Limits limits_of(const analyzers::underflow::Target& target, double scale);

}  // namespace halfscope::reports::charts
