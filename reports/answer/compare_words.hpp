// SPDX-License-Identifier: Apache-2.0
// The sentences of a comparison (comparison.hpp).
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::answer {

/// Returns a sentence: a run is broken, or B is better, worse or not different.
std::string comparison_verdict(const analyzers::compare::Comparison& comparison);

/// Returns the reasons for the verdict: overflow, zeros, updates, loss.
std::vector<std::string> comparison_reasons(const analyzers::compare::Comparison& comparison);

/// Returns the definition of "lost to zero" for these runs.
std::string lost_note(const analyzers::compare::Comparison& comparison);

/// Returns the format and loss scale of all counts, and why the format was chosen if a run decided
/// it: "In bfloat16, at loss scale 1."
std::string counted_for_text(const analyzers::compare::Comparison& comparison);

/// Returns a sentence on zeros that are most likely not underflow. Empty if there are none.
std::string far_text(const analyzers::compare::Comparison& comparison);

/// Returns a sentence that B's new zeros are underflow. Empty if the logs do not show that.
std::string happened_text(const analyzers::compare::Comparison& comparison);

/// Returns how long the losses and loss scales are equal; empty without common losses.
std::string parting_text(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
