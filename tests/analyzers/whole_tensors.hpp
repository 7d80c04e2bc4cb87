// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, one after the other.
#pragma once

#include "analyzers/readers/samples.hpp"

namespace halfscope::test {

inline void for_each_whole_tensor(const analyzers::readers::Log& log,
                                  const analyzers::frames::Selection& selection,
                                  const analyzers::frames::WholeVisitor& visit,
                                  analyzers::frames::Notes& notes,
                                  const analyzers::frames::Progress& progress = {}) {
  analyzers::frames::TensorsOfSteps tensors(selection, visit);
  const auto take = [&](const analyzers::frames::WholeStep& step) {
    tensors.take(step, step.tell);
  };
  analyzers::readers::for_each_whole_step(log, selection, take, notes, progress);
  tensors.finish(log.path(), notes);
}

}  // namespace halfscope::test
