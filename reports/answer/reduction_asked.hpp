// SPDX-License-Identifier: Apache-2.0
// The sums that the words of a command line or of a Python call select.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/formats.hpp"

namespace halfscope::reports::answer {

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
