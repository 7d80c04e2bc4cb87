// SPDX-License-Identifier: Apache-2.0
// Table of the same weight updates in other arithmetic.
#pragma once

#include <string>

#include "reports/answer/table.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

/// Returns "smaller than weight / 2048 (rule of thumb)", the updates that are taken as lost in
/// FP16. The divisor is 2^p for a target format of p significant bits.
std::string rule_of_thumb(const analyzers::underflow::Target& target);

Table what_if_table(const analyzers::underflow::Target& target, const UpdateSum& sum);

}  // namespace halfscope::reports::answer
