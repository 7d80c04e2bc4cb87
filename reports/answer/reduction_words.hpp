// SPDX-License-Identifier: Apache-2.0
// Errors of sums in few bits: `halfscope reduce`, and a section of the report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// For example "bias gradient".
std::string_view sum_name(analyzers::reduction::Sum sum);

/// Returns one sentence for each format and kind of sum (over ranks, microbatches or elements):
/// what is lost, and whether FP32 is needed. Each sum has the order with the largest error.
std::vector<std::string> reduction_sentences(
    const std::vector<analyzers::reduction::Reduction>& found);

/// Returns a summary that the page shows while the section is folded.
std::string_view reductions_digest(const std::vector<analyzers::reduction::Reduction>& found);

/// Returns reduction_sentences(), lines that set FP32, and the tensors with the largest errors.
Section reduction_section(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::answer
