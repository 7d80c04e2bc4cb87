// SPDX-License-Identifier: Apache-2.0
// Words for tensors of which a log has the largest magnitudes and no counts.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// What is broken first: NaN and infinity, overflow, what is flushed; then by magnitude.
std::vector<analyzers::underflow::TensorPeaks> peaks_by_harm(
    std::vector<analyzers::underflow::TensorPeaks> tensors);

/// Their largest magnitudes, what is broken first; empty without any.
Table peaks_table(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
