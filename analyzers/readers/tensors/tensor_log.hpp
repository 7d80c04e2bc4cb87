// SPDX-License-Identifier: Apache-2.0
// Reads tensor files without a manifest: one file, the shards of an index, or a folder of shards
// and steps.
#pragma once

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Reads the selected frames of tensor files, step by step. Files are read in parallel; histograms
/// of tensors with the same name and step are added. Holds the histograms of one step and of the
/// files that are being read; those of a single file are passed on at once. Frames and notes do not
/// depend on the number of threads. Calls `visit` from the calling thread.
void read_tensor_files(const TensorFolder& folder, const frames::Selection& selection,
                       const frames::Visitor& visit, frames::Notes& notes,
                       const frames::Progress& progress);

/// Calls `visit` with the whole tensors of every selected step. If files of a step hold shards of
/// one tensor, calls it for each of these files. Adds no notes, because read_tensor_files() has
/// added them already. Throws log::BadInput.
void visit_tensor_steps(const TensorFolder& folder, const frames::Selection& selection,
                        const frames::WholeStepVisitor& visit, const frames::Progress& progress);

/// Returns one part for each selected step of a folder of tensor files. Files of one step are one
/// part, because their shards of a tensor are added.
frames::Parts step_parts(const log::OpenPath& folder, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
