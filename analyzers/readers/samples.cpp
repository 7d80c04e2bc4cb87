// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/samples.hpp"

#include <fmt/format.h>

#include "analyzers/readers/kinds.hpp"

namespace halfscope::analyzers::readers {

void for_each_whole_step(const Log& log, const frames::Selection& selection,
                         const frames::WholeStepVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress) {
  const auto each = [&](std::span<const frames::WholeStep> ranks) {
    for (const frames::WholeStep& step : ranks) visit(step);
  };
  for_each_whole_step_of_ranks(log, selection, each, notes, progress);
}

void for_each_whole_step_of_ranks(const Log& log, const frames::Selection& selection,
                                  const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                                  const frames::Progress& progress) {
  for (const Kind* const kind : log.kinds()) {
    if (kind->read_whole == nullptr) continue;
    kind->read_whole(log.opened(), selection, visit, notes, progress);
  }
}

void refuse_without_tensors(const Log& log, const frames::Selection& selection,
                            std::string_view text) {
  require_tensors(log);
  parts_of(log, selection);  // throws if this is no log
  throw log::BadInput(fmt::format("{}: {}", log::printable(log.path().string()), text));
}

}  // namespace halfscope::analyzers::readers
