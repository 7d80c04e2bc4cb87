// SPDX-License-Identifier: Apache-2.0
// Splits a folder of tensor files into steps.
#pragma once

#include "analyzers/frames/part.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns one part for each selected step of a folder of tensor files. Files of one step are one
/// part, because their shards of a tensor are added.
frames::Parts step_parts(const log::OpenPath& folder, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
