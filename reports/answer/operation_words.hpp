// SPDX-License-Identifier: Apache-2.0
// Operations of a run against their emulation on the same inputs, in words. Plain text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::answer {

/// "FP16"
std::string_view format_text(Dtype dtype);

/// A relative error: "0.00098".
std::string error_text(double relative);

/// "identical", or whether rounding explains the difference; binary32 sums have no such limit.
std::string_view kind_of(const analyzers::compare::Operation& operation);

/// "Operations on the same inputs: B against its emulation, steps 0 to 19", without a full stop.
std::string operations_heading(const analyzers::compare::Operations& operations,
                               std::string_view run);

/// Results in one format: how many are identical; and where not all are, what is worst and how far,
/// and whether rounding explains it. Names are printable.
struct FormatLines {
  std::string sum;
  std::vector<std::string> details;
};
std::vector<FormatLines> operations_lines(const analyzers::compare::Operations& operations);

}  // namespace halfscope::reports::answer
