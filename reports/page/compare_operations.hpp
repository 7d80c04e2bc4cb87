// SPDX-License-Identifier: Apache-2.0
// Operations of a run against their emulation on the same inputs: in words, and as a section of the
// page of two runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports {

/// "Operations on the same inputs: B against its emulation, steps 0 to 19", without a full stop.
std::string operations_heading(const analyzers::Operations& operations, std::string_view run);

/// Results in one format: how many are identical; and where not all are, what is worst and how far,
/// and whether rounding explains it. Names are printable.
struct FormatLines {
  std::string sum;
  std::vector<std::string> details;
};
std::vector<FormatLines> operations_lines(const analyzers::Operations& operations);

/// Empty where no run's operations were checked.
std::string operations_section(const analyzers::Comparison& comparison);

}  // namespace halfscope::reports
