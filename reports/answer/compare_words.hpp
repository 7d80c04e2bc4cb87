// SPDX-License-Identifier: Apache-2.0
// The sentences of a comparison (comparison.hpp).
#pragma once

#include <string>
#include <vector>

#include "analyzers/compare/compare.hpp"

namespace halfscope::reports::answer {

/// Whether a run is broken, or B is better or worse.
std::string comparison_verdict(const analyzers::compare::Comparison& comparison);

/// What the verdict stands on: overflow, zeros, updates, loss.
std::vector<std::string> comparison_reasons(const analyzers::compare::Comparison& comparison);

/// What "lost to zero" means in these runs.
std::string lost_note(const analyzers::compare::Comparison& comparison);

/// "In bfloat16, at loss scale 1.": what the runs were counted for, and who chose it.
std::string counted_for_text(const analyzers::compare::Comparison& comparison);

/// Which zeros are most likely no underflow; empty where none are.
std::string far_text(const analyzers::compare::Comparison& comparison);

/// That new zeros of B are underflow; empty where that cannot be said.
std::string happened_text(const analyzers::compare::Comparison& comparison);

/// How long the losses and loss scales stay together; empty where the runs have none in common.
std::string parting_text(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
