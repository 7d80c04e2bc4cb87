// SPDX-License-Identifier: Apache-2.0
// One finding: a sentence, what to do, and where the evidence is. Plain text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::reports::answer {

enum class Severity : std::uint8_t {
  serious,  ///< the run breaks, or a large part of what it computes is lost
  warning,  ///< something is lost, or will be if the run goes on as it does
  note      ///< worth knowing; nothing is lost
};
std::string_view name_of(Severity severity);

/// Where the evidence is.
enum class Evidence : std::uint8_t { scales, updates, overflow, policies, formats, advice };
std::string_view name_of(Evidence evidence);  ///< "scales", ...: the section's id on the page

struct Finding {
  Severity severity = Severity::note;
  std::string title;   ///< one sentence with the number
  std::string advice;  ///< what to do, in one or two sentences; may be empty
  Evidence evidence = Evidence::scales;
};

/// Shares below which a loss is not reported as a finding, and from which it is serious.
inline constexpr double kWorthTelling = 0.001, kSerious = 0.05;

}  // namespace halfscope::reports::answer
