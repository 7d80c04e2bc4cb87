// SPDX-License-Identifier: Apache-2.0
// Words and tables for the tensors of a log, with counts or with largest magnitudes alone.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns a sentence why zeros or the flushed share are unknown; empty if they are known.
std::string zeros_doubt(const analyzers::underflow::TensorFindings& tensor);

/// Returns sentences on a tensor's format, shape and counts, and on what is not known exactly.
std::string facts_text(const analyzers::underflow::TensorFindings& tensor);

/// Returns sentences on the values of each log at its loss scale: first NaN, infinities and
/// overflow, then the sums over gradients, or over all tensors if there are no gradients.
std::vector<std::string> tensors_sentences(const analyzers::Findings& found);
/// Returns the classes of each tensor's values, worst first. If the loss scale is not 1 and there
/// are gradients, tensors that it does not multiply are omitted.
Table tensors_table(const analyzers::underflow::Analysis& analysis);

/// Returns the tensors sorted by harm: NaN or infinity, overflow, values flushed to zero, the rest.
/// Within each, the largest magnitude is first.
std::vector<analyzers::underflow::TensorPeaks> peaks_by_harm(
    std::vector<analyzers::underflow::TensorPeaks> tensors);

/// Returns the largest magnitudes in the order of peaks_by_harm(); empty without such tensors.
Table peaks_table(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
