// SPDX-License-Identifier: Apache-2.0
// --junit: what became of every condition, as CI systems read test results.
#pragma once

#include <string>
#include <string_view>

#include "cli/gates/gate.hpp"
#include "cli/options/common.hpp"

namespace halfscope::cli::gates {

/// --junit FILE.
void add_junit(options::Command& command, std::string& file);

/// Refuses stdout, and a file without conditions to fill it. Throws BadUsage.
void require_junit_sense(const std::string& file, const std::vector<std::string>& conditions);

/// A JUnit XML document: a test suite a condition, a test case each tensor it was tested on.
/// Undecided is a failure, as for the exit code; not tested is skipped.
std::string junit_text(std::string_view command, const GateLines& lines);

/// Writes it where `file` is not empty. Throws log::BadInput naming the file.
void write_junit(const std::string& file, std::string_view command, const GateLines& lines);

}  // namespace halfscope::cli::gates
