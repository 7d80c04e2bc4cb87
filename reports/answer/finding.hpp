// SPDX-License-Identifier: Apache-2.0
// A finding: a sentence, what to do, and the place of its evidence. Strings may have marks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::reports::answer {

enum class Severity : std::uint8_t {
  breaks,   ///< the run fails, or has a loss that no loss scale prevents
  serious,  ///< a large part of what the run computes is lost
  warning,  ///< something is lost, or will be if the run continues
  note      ///< information; nothing is lost
};
std::string_view name_of(Severity severity);

/// The section with a finding's evidence.
enum class Evidence : std::uint8_t {
  scales,
  timeline,
  updates,
  overflow,
  policies,
  formats,
  quantised,
  ranks,
  reductions,
  advice
};
std::string_view name_of(Evidence evidence);  ///< id of the section on the page: "scales", ...

struct Finding {
  Severity severity = Severity::note;
  std::string title;   ///< one sentence, with the most important number
  std::string action;  ///< advice in one or two sentences; empty if there is none
  Evidence evidence = Evidence::scales;
};

/// Returns the title and the action, separated by a space.
std::string text_of(const Finding& finding);

}  // namespace halfscope::reports::answer
