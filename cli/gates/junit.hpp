// SPDX-License-Identifier: Apache-2.0
// --junit: the results of all conditions in the format that CI systems read.
#pragma once

#include <string>
#include <string_view>

#include "cli/gates/gate.hpp"

namespace halfscope::cli::gates {

/// Returns a JUnit XML document: one test suite per condition, one test case per test. `undecided`
/// is a failure, as in the exit code; `not_tested` is skipped.
std::string junit_text(std::string_view command, const GateTests& tests);

/// Writes the document unless `file` is empty. Throws log::BadInput, which names the file.
void write_junit(const std::string& file, std::string_view command, const GateTests& tests);

}  // namespace halfscope::cli::gates
