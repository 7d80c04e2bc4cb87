// SPDX-License-Identifier: Apache-2.0
// What an analysis would be in bfloat16. That a run is in bfloat16 is known when all of it has been
// read: what is needed to judge it so is kept meanwhile, and it is not read again.
#pragma once

#include <optional>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Where one step's values of a tensor go in a format.
StepClasses classes_of(const frames::Frame& frame, const Target& target, double loss_scale);

/// The same in bfloat16, with the target's subnormals; empty where all finite nonzero values are
/// normal numbers in it, as nearly always.
std::optional<StepClasses> unusual_in_bfloat16(const frames::Frame& frame, const Target& target,
                                               double loss_scale);

/// Whether a tensor's frame can be judged in bfloat16 without its values. A gradient in binary16
/// need not be; where a scale is no power of two, tables counted for another format are not exact
/// for this one.
bool may_judge_in_bfloat16(const frames::Frame& frame, double loss_scale);

/// Makes the analysis what analyze() would find in bfloat16. False, and nothing done, where the
/// logs must be read again: Analysis::known_in_bfloat16.
bool judge_in_bfloat16(Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
