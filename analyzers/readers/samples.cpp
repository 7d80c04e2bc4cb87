// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/samples.hpp"

#include "analyzers/readers/tensors/file_samples.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/run_log/run_samples.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers {

void for_each_whole_step(const std::filesystem::path& log, const Selection& selection,
                         const WholeStepVisitor& visit, Notes& notes, const Progress& progress) {
  if (!readers::may_hold_whole_tensors(log)) return;
  const bool is_run = std::filesystem::is_directory(log) &&
                      (readers::is_run_log(log) || !log::rank_folders(log).empty());
  if (is_run) {
    visit_run_samples(log, selection, visit, notes, progress);
  } else {
    visit_file_samples(log, selection, visit, progress);
  }
}

void for_each_whole_tensor(const std::filesystem::path& log, const Selection& selection,
                           const WholeVisitor& visit, Notes& notes, const Progress& progress) {
  TensorsOfSteps tensors(selection, visit);
  const auto take = [&](const WholeStep& step) { tensors.take(step); };
  for_each_whole_step(log, selection, take, notes, progress);
  tensors.finish(log, notes);
}

}  // namespace halfscope::analyzers
