// SPDX-License-Identifier: Apache-2.0
// Operations of a run against their emulation on the same inputs. Text has marks (marks.hpp).
#pragma once

#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Of every format how many results are identical; where not all are, what is worst and how far,
/// and whether rounding explains it. Then every operation. run: "A" or "B".
Section operations_section(const analyzers::compare::Operations& operations, std::string_view run);

}  // namespace halfscope::reports::answer
