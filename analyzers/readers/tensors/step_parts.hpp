// SPDX-License-Identifier: Apache-2.0
// A folder of tensor files, step by step.
#pragma once

#include "analyzers/frames/part.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Of a folder that has some. Files of a step are one part, since shards of a tensor are added.
frames::Parts step_parts(const log::OpenPath& folder, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
