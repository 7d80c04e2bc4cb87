// SPDX-License-Identifier: Apache-2.0
// Operations of a run against their emulation on the same inputs: a section of the page of two
// runs.
#pragma once

#include <string>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::page {

/// Empty where no run's operations were checked.
std::string operations_section(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::page
