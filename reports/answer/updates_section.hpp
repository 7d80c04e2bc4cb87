// SPDX-License-Identifier: Apache-2.0
// Lost weight updates as sentences and tables.
#pragma once

#include <string>

#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

/// Returns the updates of all weights together and of each weight. Empty if no tensor has updates.
Section updates_section(const analyzers::underflow::Analysis& analysis, const Tensors& tensors);

/// For example "1.2 % of 34,567 updates lost in pure FP16".
std::string updates_digest(const analyzers::underflow::Analysis& analysis, const UpdateSum& sum);

/// Returns why the log shows no lost updates, and what to record.
std::string missing_updates_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
