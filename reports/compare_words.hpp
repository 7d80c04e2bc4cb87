// SPDX-License-Identifier: Apache-2.0
// What a comparison says in words, in the terminal and on the page.
#pragma once

#include <string>

#include "analyzers/compare.hpp"

namespace halfscope::reports {

/// Whether B is better for the gradients: zeros, overflow, loss, each a sentence.
std::string comparison_answer(const analyzers::Comparison& comparison);

/// "12 % to 13 %" of a run's gradients.
std::string share_of_total(const Interval& count, std::uint64_t total);

/// "1", "1024 (2^10)", or "256 (2^8) to 1024 (2^10)"; "not known" without gradients.
std::string scales_text(const analyzers::RunTotals& run);

/// "2 of 900 steps", or "not recorded".
std::string skipped_text(const analyzers::RunTotals& run);

/// log2 as it is shown: "+1.5", "0".
std::string shift_text(double log2);

/// NaN, infinity and overflow of B beyond A's.
std::string more_not_finite(const analyzers::ComparedTensor& tensor);

/// "+12", "0", "-3".
std::string signed_text(std::int64_t count);

}  // namespace halfscope::reports
