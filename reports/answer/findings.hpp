// SPDX-License-Identifier: Apache-2.0
// What a study found, as sentences in order of harm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer {

/// By severity; within one in the order in which findings.cpp asks for them. Empty where nothing
/// was found.
std::vector<Finding> findings(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
