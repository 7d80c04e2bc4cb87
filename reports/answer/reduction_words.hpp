// SPDX-License-Identifier: Apache-2.0
// Losses of sums in few bits: `halfscope reduce`, and a section of the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// A format that sums can be computed in, by any of its names. Null where it is none.
const NamedFormat* accumulator_called(const std::string& name);
inline constexpr std::string_view kAccumulatorNames = "binary16, bfloat16, binary32, tf32 or e5m2";

/// The sums that these words ask for; over and order may be empty. Throws std::invalid_argument
/// saying what was found and what is wanted.
analyzers::reduction::Asked sums_called(const std::string& over,
                                        const std::optional<std::string>& format,
                                        const std::string& order,
                                        const std::vector<std::uint64_t>& counts);
/// "LOG: has none of them", and how to record them.
std::string no_sums_text(const std::string& log, const std::string& over);

/// "bias gradient"
std::string_view sum_name(analyzers::reduction::Sum sum);

/// One sentence a format for the sums over ranks, over microbatches and over elements: what is
/// lost, and whether FP32 is needed. Of several orders the one with the largest error.
std::vector<std::string> reduction_sentences(
    const std::vector<analyzers::reduction::Reduction>& found);

/// These sentences, where to set FP32, and the tensors with the largest errors.
Section reduction_section(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::answer
