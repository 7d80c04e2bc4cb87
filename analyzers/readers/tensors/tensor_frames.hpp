// SPDX-License-Identifier: Apache-2.0
// Reads frames from tensor files without a manifest: one file, or a folder of shards and steps.
#pragma once

#include <span>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Reads one tensor file, or the shards of an index. Same contract as for_each_frame().
void read_tensor_file(const log::OpenPath& opened, const frames::Selection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

/// Reads a folder step by step. Files are read in parallel; histograms of tensors with the same
/// name and step are added. Holds the histograms of one step and of the files that are being read.
/// Frames and notes do not depend on the number of threads. Calls `visit` from the calling thread.
void read_tensor_folder(const TensorFolder& folder, const frames::Selection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

/// Returns the files whose steps are selected.
std::vector<StepFile> selected_files(const TensorFolder& folder,
                                     const frames::Selection& selection);
/// Same as read_tensor_folder(), for some of the selected files: all files of one or more steps.
void read_step_files(const TensorFolder& folder, std::span<const StepFile> files,
                     const frames::Selection& selection, const frames::Visitor& visit,
                     frames::Notes& notes, const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::tensors
