// SPDX-License-Identifier: Apache-2.0
// Errors of sums in few bits: `halfscope reduce`, and a section of the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/formats.hpp"
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

/// Returns a format for accumulators by any of its names. Returns null if there is no such format.
const NamedFormat* accumulator_called(const std::string& name);
inline constexpr std::string_view kAccumulatorNames = "binary16, bfloat16, binary32, tf32 or e5m2";

/// Returns the sums that these words select. An empty `over`, `format` or `order` selects all.
/// Throws std::invalid_argument with the word found and the words expected.
analyzers::reduction::ReductionOptions sums_called(const std::string& over,
                                                   const std::optional<std::string>& format,
                                                   const std::string& order,
                                                   const std::vector<std::uint64_t>& counts);
/// Returns that a log has no such sums, and how to record them. Begins with the name of the log.
std::string no_sums_text(const std::string& log, const std::string& over);

}  // namespace halfscope::reports::answer
