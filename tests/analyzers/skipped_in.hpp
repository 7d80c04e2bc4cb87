// SPDX-License-Identifier: Apache-2.0
// How many skipped steps a log's reader tells.
#pragma once

#include <optional>
#include <string>

#include "analyzers/readers/kinds.hpp"
#include "temp_folder.hpp"

namespace halfscope::test {

/// Skipped steps as a log's range of them, with those that perhaps were skipped.
inline Interval skipped_in(const std::string& text, std::optional<std::uint64_t> ranks) {
  namespace frames = analyzers::frames;
  const TempFolder folder;
  Interval count;
  frames::Visitor visit;
  visit.skipped = [&](const frames::SkippedSteps& steps) { count += steps.count; };
  visit.scalars = [&](const log::StepScalars& s) { count += s.found_inf.value_or(false) ? 1 : 0; };
  visit.kind = [&](const frames::LogKind& kind) { count += Interval(0, kind.perhaps_skipped); };
  frames::Selection selection;
  selection.ranks = ranks;
  frames::Notes notes;
  analyzers::readers::for_each_frame(folder.write("out.log", text), selection, visit, notes, {});
  return count;
}

}  // namespace halfscope::test
