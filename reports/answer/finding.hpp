// SPDX-License-Identifier: Apache-2.0
// One finding: a sentence, what to do, and where the evidence is. Text has marks (marks.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::reports::answer {

enum class Severity : std::uint8_t {
  breaks,   ///< the run fails, or it loses what no loss scale brings back
  serious,  ///< a large part of what it computes is lost
  warning,  ///< something is lost, or will be if the run goes on as it does
  note      ///< worth knowing; nothing is lost
};
std::string_view name_of(Severity severity);

/// Where the evidence is.
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
std::string_view name_of(Evidence evidence);  ///< "scales", ...: the section's id on the page

struct Finding {
  Severity severity = Severity::note;
  std::string title;   ///< one sentence with the number
  std::string action;  ///< what to do, in one or two sentences; may be empty
  Evidence evidence = Evidence::scales;
};

/// "title action"
std::string text_of(const Finding& finding);

}  // namespace halfscope::reports::answer
