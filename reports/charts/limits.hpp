// SPDX-License-Identifier: Apache-2.0
// The limits of a format on the axis of unscaled magnitudes, for values multiplied by a scale.
#pragma once

#include <array>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::charts {

/// One limit: its position on a log2 axis of unscaled magnitudes, and its text, as "65520/2^10".
struct Limit {
  double position = 0;
  std::string label;
};

struct Limits {
  Limit zero;       ///< values at or below it become zero
  Limit subnormal;  ///< values below it become subnormal
  Limit overflow;   ///< values from here on overflow: the largest finite value plus half an ulp
};

/// Returns the limits. If subnormals are flushed, `zero` is at the smallest normal number.
Limits limits_of(const analyzers::underflow::Target& target, double scale);

}  // namespace halfscope::reports::charts
