// SPDX-License-Identifier: Apache-2.0
// Policies replayed over a log, as sentences and a table.
#pragma once

#include <string>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// "runs/a: 901 steps, 0 to 900, 901 with histograms"
std::string policies_heading(const analyzers::replay::PolicyStudy& study);

/// What the policies are held against, then the policies by what they lose; those that did the same
/// share a row. Before it what one needs to know to read it.
Section policies_section(const analyzers::replay::PolicyStudy& study);

/// "12 policies over 901 steps; the run itself skipped 3"
std::string policies_digest(const analyzers::Study& study);

/// What a policy does wrong on this log. Those of the run itself, of the tuned policy and, where
/// policies were asked for, of all stand first and concern the reader.
struct PitfallWords {
  std::vector<std::string> names;  ///< of policies; "the run itself"
  std::string text;
  bool concerns = false;
};
std::vector<PitfallWords> pitfalls(const analyzers::replay::PolicyStudy& study, bool asked);
/// Those that do not, by name; empty where there are none.
std::string other_pitfalls_text(const std::vector<PitfallWords>& pitfalls);

}  // namespace halfscope::reports::answer
