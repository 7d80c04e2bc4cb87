// SPDX-License-Identifier: Apache-2.0
// The same weight updates in other arithmetic, as a table.
#pragma once

#include "reports/answer/table.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

/// "An update below weight / 2048 is lost", as people say of FP16: this number for the target
/// format, 2^p with p bits of precision.
std::uint64_t rule_of_thumb(const analyzers::underflow::Target& target);

Table what_if_table(const analyzers::underflow::Target& target, const UpdateSum& sum);

}  // namespace halfscope::reports::answer
