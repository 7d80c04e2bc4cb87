// SPDX-License-Identifier: Apache-2.0
// Estimates the signal-to-quantisation-noise ratio of a tensor from its histograms.
#pragma once

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

/// Returns the ratio at scale 2^k, at which nothing may overflow. The estimate assumes that the
/// values of a histogram's segment are spread evenly over it, so that the noise is ulp^2 / 12 if a
/// segment has many representable numbers (Bennett 1948). The bounds assume the best and the worst
/// positions. Empty if no value is finite and nonzero, or if only bounds of the counts are known.
std::optional<underflow::NoiseRatio> estimate_noise(const underflow::TensorFindings& tensor,
                                                    const underflow::Target& target, int k);

}  // namespace halfscope::analyzers::formats
