// SPDX-License-Identifier: Apache-2.0
// Words for tensors that have largest magnitudes in a log, but no counts.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Returns the tensors sorted by harm: NaN or infinity, overflow, values flushed to zero, the rest.
/// Within each, the largest magnitude is first.
std::vector<analyzers::underflow::TensorPeaks> peaks_by_harm(
    std::vector<analyzers::underflow::TensorPeaks> tensors);

/// Returns the largest magnitudes in the order of peaks_by_harm(); empty without such tensors.
Table peaks_table(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
