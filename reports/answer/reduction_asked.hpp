// SPDX-License-Identifier: Apache-2.0
// The sums that words ask for: of a command line, or of Python.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/formats.hpp"

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

}  // namespace halfscope::reports::answer
