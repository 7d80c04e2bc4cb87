// SPDX-License-Identifier: Apache-2.0
// Policies replayed over a log, as sentences and a table.
#pragma once

#include <string>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// For example "runs/a: 901 steps, 0 to 900, 901 with histograms".
std::string policies_heading(const analyzers::replay::PolicyStudy& study);

/// Returns a table of the run itself and the recommended settings, then of the policies, least lost
/// first. Policies with equal results have one row. The sentences explain how to read the table.
Section policies_section(const analyzers::replay::PolicyStudy& study);

/// For example "12 policies over 901 steps; the run itself skipped 3".
std::string policies_digest(const analyzers::Study& study);

/// A fault of some policies on this log. `concerns`: true for the run itself and the tuned policy,
/// and for all policies if the user selected them by name (`asked` below).
struct PitfallWords {
  std::vector<std::string> names;  ///< the policies; "the run itself" for the recorded one
  std::string text;
  bool concerns = false;
};
std::vector<PitfallWords> pitfalls(const analyzers::replay::PolicyStudy& study, bool asked);
/// Returns the names of the policies without `concerns`. Empty if there are none.
std::string other_pitfalls_text(const std::vector<PitfallWords>& pitfalls);

}  // namespace halfscope::reports::answer
