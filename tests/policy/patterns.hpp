// SPDX-License-Identifier: Apache-2.0
// Runs written as patterns of overflowing and clean steps.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "policy/policy_run.hpp"

namespace halfscope::policy {

/// Steps "O" overflow at every scale, steps "." at none.
inline auto pattern(std::string steps) {
  return [steps](int step) {
    return steps.at(static_cast<std::size_t>(step)) == 'O' ? std::nan("") : 0.0;
  };
}

/// Exponents of the scales that a pattern's steps use.
inline std::vector<int> used(const std::string& policy, const std::string& steps) {
  return exponents(run(policy.c_str(), static_cast<int>(steps.size()), pattern(steps)).scale);
}

}  // namespace halfscope::policy
