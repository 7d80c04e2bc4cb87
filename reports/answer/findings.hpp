// SPDX-License-Identifier: Apache-2.0
// All findings of a study as sentences, most severe first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer {

/// Returns the findings by severity; equal ones in the order of calls. Empty if nothing was found.
std::vector<Finding> findings(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
