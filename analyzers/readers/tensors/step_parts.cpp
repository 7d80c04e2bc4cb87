// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/step_parts.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "analyzers/readers/tensors/file_samples.hpp"
#include "analyzers/readers/tensors/tensor_frames.hpp"

namespace halfscope::analyzers::readers::tensors {

frames::Parts step_parts(const log::OpenPath& opened, const frames::Selection& selection) {
  const auto folder =
      std::make_shared<const TensorFolder>(list_tensor_folder(opened, selection.read_as));
  const auto files =
      std::make_shared<const std::vector<StepFile>>(selected_files(*folder, selection));
  frames::Parts parts;
  for (auto first = files->begin(); first != files->end();) {
    const auto end = std::find_if(first, files->end(),
                                  [&](const StepFile& file) { return file.step != first->step; });
    frames::Part& part = parts.emplace_back();
    part.log = opened.path.string();
    part.index = parts.size() - 1;
    part.name = "step " + std::to_string(first->step);
    part.read = [folder, files, selection, step = std::span(first, end)](
                    const frames::Visitor& visit, frames::Notes& notes,
                    const frames::Progress& progress) {
      read_step_files(*folder, step, selection, visit, notes, progress);
    };
    frames::Selection one = selection;
    one.first_step = first->step;
    one.end_step = first->step + 1;
    part.read_whole = [folder, one](const frames::WholeStepVisitor& visit, frames::Notes&,
                                    const frames::Progress& progress) {
      visit_folder_samples(*folder, one, visit, progress);
    };
    first = end;
  }
  for (frames::Part& part : parts) part.of = parts.size();
  return parts;
}

}  // namespace halfscope::analyzers::readers::tensors
