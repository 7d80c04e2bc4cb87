// SPDX-License-Identifier: Apache-2.0
// The numbers of a step: those operands that are the same for all elements.
#pragma once

#include <array>

#include "halfscope/optimizer/step.hpp"

namespace halfscope::optimizer {

using Numbers = std::array<double, kOperands>;

/// Returns the numbers as Python or a kernel computes them, before they meet an element.
Numbers numbers_of(const Variant& variant, const Settings& settings, const StepOptions& options);

}  // namespace halfscope::optimizer
