// SPDX-License-Identifier: Apache-2.0
// Visits the whole tensors of tensor files, one step at a time.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Calls `visit` for every selected step of a tensor file, an index of shards, or a folder of
/// files. If files of a step hold shards of one tensor, calls it for each of these files. Adds no
/// notes, because for_each_frame() has added them already. Throws log::BadInput.
void visit_file_samples(const log::OpenPath& log, const frames::Selection& selection,
                        const frames::WholeStepVisitor& visit, const frames::Progress& progress);
/// Same as visit_file_samples(), for a folder that is listed already.
void visit_folder_samples(const TensorFolder& folder, const frames::Selection& selection,
                          const frames::WholeStepVisitor& visit, const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::tensors
