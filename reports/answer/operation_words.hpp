// SPDX-License-Identifier: Apache-2.0
// Operations of a run against their emulation on the same inputs. Strings may have marks.
#pragma once

#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns for each format how many results are identical; if not all are, the worst operation, how
/// far it differs, and whether rounding explains that. The table has every operation. `run`: "A" or
/// "B".
Section operations_section(const analyzers::compare::Operations& operations, std::string_view run);

}  // namespace halfscope::reports::answer
