// SPDX-License-Identifier: Apache-2.0
// What a study found, as sentences in order of harm: for the page and for the terminal. Plain text;
// names from logs are made printable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer {

/// By severity; within one in this order: NaN in the model, overflow at scale 1, overflow by the
/// scale, the run's loss-scaling policy, gradient underflow, swamped updates, tensors no single
/// scale serves, room that runs out, dimensions, formats, memory. Empty where nothing was found.
std::vector<Finding> findings(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
