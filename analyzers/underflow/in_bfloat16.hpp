// SPDX-License-Identifier: Apache-2.0
// Converts an analysis into one for bfloat16. A run is known to be in bfloat16 only after all of it
// is read. The facts needed are therefore kept while reading, and the log is not read again.
#pragma once

#include <optional>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Returns the classes of one step's values of a tensor in a format.
StepClasses classes_of(const frames::Frame& frame, const Target& target, double loss_scale);

/// Returns the classes in bfloat16, with the target's subnormals; empty in the usual case that all
/// finite nonzero values are normal numbers there.
std::optional<StepClasses> unusual_in_bfloat16(const frames::Frame& frame, const Target& target,
                                               double loss_scale);

/// Returns true if a tensor's frame can be judged in bfloat16 without its values. False for a
/// gradient in binary16, which is never judged so, and if a scale is no power of two: histograms
/// counted for another format are then not exact in bfloat16.
bool may_judge_in_bfloat16(const frames::Frame& frame, double loss_scale);

/// Converts the analysis into the result that analyze() would have in bfloat16. Returns false and
/// changes nothing if the logs must be read again (Analysis::known_in_bfloat16 is false).
bool judge_in_bfloat16(Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
