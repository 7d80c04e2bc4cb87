// SPDX-License-Identifier: Apache-2.0
// Words for tensors of which a log has the largest magnitudes and no counts.
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/tensor_peaks.hpp"

namespace halfscope::reports::answer {

/// What is broken first: NaN and infinity, overflow, what is flushed; then by magnitude.
std::vector<analyzers::underflow::TensorPeaks> peaks_by_harm(
    std::vector<analyzers::underflow::TensorPeaks> tensors);

/// "0.9999 to 1", "at most 5e-05"; empty where no value is finite.
std::string largest_text(const analyzers::underflow::TensorPeaks& tensor);

/// What the target format makes of it: "overflows", "small values are not known".
std::string peaks_verdict(const analyzers::underflow::TensorPeaks& tensor);

/// "Largest magnitudes of 4 tensors at 3 steps, without counts; gradients at loss scale 1024".
std::string peaks_title(const std::vector<analyzers::underflow::TensorPeaks>& tensors,
                        const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
