// SPDX-License-Identifier: Apache-2.0
// The parts that findings() is made of. Internal to findings*.cpp.
#pragma once

#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer::found {

using List = std::vector<Finding>;

/// What people call the format that is asked about.
std::string format_name(const analyzers::underflow::Analysis& analysis);
/// The first few names, quoted by nothing, and how many more there are.
std::string some_names(const std::vector<std::string>& names);

void alarms(const analyzers::Study& study, List& to);     // findings_overflow.cpp
void collapse(const analyzers::Study& study, List& to);   // findings_overflow.cpp
void overflow(const analyzers::Study& study, List& to);   // findings_overflow.cpp
void thin_room(const analyzers::Study& study, List& to);  // findings_overflow.cpp
void policies(const analyzers::Study& study, List& to);   // findings_policies.cpp
void underflow(const analyzers::Study& study, List& to);
void swamped(const analyzers::Study& study, List& to);
void no_single_scale(const analyzers::Study& study, List& to);
void dimensions(const analyzers::Study& study, List& to);
void formats(const analyzers::Study& study, List& to);
void memory(const analyzers::Study& study, List& to);

}  // namespace halfscope::reports::answer::found
