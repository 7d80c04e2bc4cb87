// SPDX-License-Identifier: Apache-2.0
// What a comparison says in words, in the terminal and on the page.
#pragma once

#include <string>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::answer {

/// One sentence: whether a run is broken, or B is better or worse.
std::string comparison_verdict(const analyzers::compare::Comparison& comparison);

/// What the verdict stands on: overflow, zeros, updates, loss, each a sentence.
std::string comparison_answer(const analyzers::compare::Comparison& comparison);

/// What "lost to zero" means in these runs.
std::string lost_note(const analyzers::compare::Comparison& comparison);

/// "In bfloat16, at loss scale 1": what the runs were counted for, and who chose it.
std::string counted_for_text(const analyzers::compare::Comparison& comparison);

/// Why new zeros of B are underflow, or most likely none; empty where nothing can be said.
std::string new_zeros_text(const analyzers::compare::Comparison& comparison);

/// The share of a run's updates that left their weight as it is, but for those that are zero.
std::string lost_updates_text(const analyzers::compare::RunTotals& run,
                              const UpdateCounts& updates);

/// How long the losses and loss scales stay together; empty where the runs have none in common.
std::string parting_text(const analyzers::compare::Comparison& comparison);

/// "0.626", "NaN".
std::string loss_text(double loss);

/// "12 % to 13 %" of a run's gradients.
std::string share_of_total(const Interval& count, std::uint64_t total);

/// "1", "1024 (2^10)", or "256 (2^8) to 1024 (2^10)"; "not known" without gradients.
std::string scales_text(const analyzers::compare::RunTotals& run);

/// "2 of 900 steps", or "not recorded".
std::string skipped_text(const analyzers::compare::RunTotals& run);

/// log2 as it is shown: "+1.5", "0".
std::string shift_text(double log2);

/// NaN, infinity and overflow of B beyond A's.
std::string more_not_finite(const analyzers::compare::ComparedTensor& tensor);

/// "+12", "0", "-3".
std::string signed_text(std::int64_t count);

}  // namespace halfscope::reports::answer
