// SPDX-License-Identifier: Apache-2.0
// The series of a log, as a replay has it.
#pragma once

#include <filesystem>
#include <utility>

#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// Throws what a user is told where there is none.
inline replay::StepSeries series_in(const std::filesystem::path& log,
                                    const frames::Selection& selection = {},
                                    frames::Notes* notes = nullptr) {
  Findings found = analyze({log}, {}, selection, {.series = true, .scalars_suffice = true}, {});
  if (found.series.series.empty()) study_policies(std::move(found), {});
  replay::StepSeries series = std::move(found.series.series.front());
  if (notes != nullptr) {
    *notes = found.analysis.notes;
    notes->add_all(series.notes);
  }
  return series;
}

}  // namespace halfscope::analyzers
