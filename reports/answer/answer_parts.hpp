// SPDX-License-Identifier: Apache-2.0
// The parts of an answer. Internal to reports/answer.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::reports::answer {

std::vector<Number> numbers(const analyzers::Study& study);       // numbers.cpp
std::vector<std::string> details(const analyzers::Study& study);  // details.cpp
std::vector<Table> tables(const analyzers::Study& study);         // advice_tables.cpp

/// Returns the text of Answer::clear. Defined in clear.cpp.
std::string clear_text(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
