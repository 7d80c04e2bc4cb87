// SPDX-License-Identifier: Apache-2.0
// Frames of whole tensors: of files that have no manifest (one file, or a folder of shards and
// steps).
#pragma once

#include <span>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"

namespace halfscope::analyzers::readers::tensors {

void read_tensor_file(const log::OpenPath& opened, const frames::Selection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

/// Step by step; files of a step are read in parallel, and the tables of a name that several of
/// them have are added. Holds one step's tables at a time. The frames and notes are the same for
/// any number of threads.
void read_tensor_folder(const TensorFolder& folder, const frames::Selection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

/// The files whose steps are selected.
std::vector<StepFile> selected_files(const TensorFolder& folder,
                                     const frames::Selection& selection);
/// read_tensor_folder of some of these.
void read_step_files(const TensorFolder& folder, std::span<const StepFile> files,
                     const frames::Selection& selection, const frames::Visitor& visit,
                     frames::Notes& notes, const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::tensors
