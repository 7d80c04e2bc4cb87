// SPDX-License-Identifier: Apache-2.0
// The signal-to-quantisation-noise ratio of a tensor of which only tables are known.
#pragma once

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

/// At scale 2^k, at which nothing overflows. The estimate takes the values of a segment of the
/// table as spread evenly over it, which makes the noise ulp^2 / 12 wherever a segment holds many
/// representable numbers (Bennett 1948); the bounds take them where they lie best and worst. Empty
/// where no value is finite and nonzero, and where only bounds of the counts are known.
std::optional<underflow::NoiseRatio> estimate_noise(const underflow::TensorFindings& tensor,
                                                    const underflow::Target& target, int k);

}  // namespace halfscope::analyzers::formats
