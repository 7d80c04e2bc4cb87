// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/samples.hpp"

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/run_log/run_samples.hpp"
#include "analyzers/readers/tensors/file_samples.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::readers {

void for_each_whole_step(const std::filesystem::path& log, const frames::Selection& selection,
                         const frames::WholeStepVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress) {
  if (!readers::may_hold_whole_tensors(log)) return;
  const bool is_run = std::filesystem::is_directory(log) &&
                      (readers::common::is_run_log(log) || !log::rank_folders(log).empty());
  if (is_run) {
    run_log::visit_run_samples(log, selection, visit, notes, progress);
  } else {
    tensors::visit_file_samples(log, selection, visit, progress);
  }
}

void for_each_whole_tensor(const std::filesystem::path& log, const frames::Selection& selection,
                           const frames::WholeVisitor& visit, frames::Notes& notes,
                           const frames::Progress& progress) {
  frames::TensorsOfSteps tensors(selection, visit);
  const auto take = [&](const frames::WholeStep& step) { tensors.take(step); };
  for_each_whole_step(log, selection, take, notes, progress);
  tensors.finish(log, notes);
}

}  // namespace halfscope::analyzers::readers
