// SPDX-License-Identifier: Apache-2.0
// What becomes of weight updates, as sentences and tables.
#pragma once

#include <string>

#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

/// Of those of the tensors that have updates, together and one by one; empty where none has.
Section updates_section(const analyzers::underflow::Analysis& analysis, const Tensors& tensors);

/// "1.2 % of 34,567 updates are lost in pure FP16"
std::string updates_digest(const analyzers::underflow::Analysis& analysis, const UpdateSum& sum);

/// Why a log shows no lost updates, and what would.
std::string missing_updates_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
