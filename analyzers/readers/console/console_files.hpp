// SPDX-License-Identifier: Apache-2.0
// The runs in a folder of console logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/readers/console/console_survey.hpp"

namespace halfscope::analyzers::readers::console {

struct ConsoleFile {
  std::filesystem::path path;
  Survey survey;
};

/// Returns the name of a file as messages show it.
std::string name_of(const ConsoleFile& file);

/// The files of one run in the order of their steps. Each continues the one before, and its steps
/// replace those of that file. Files without steps come last.
using ConsoleRun = std::vector<ConsoleFile>;

/// Groups files by run. Only one of the files that differ in a rank's number is kept. Files whose
/// steps overlap in part or follow each other are one run that was restarted; any other is its own
/// run.
std::vector<ConsoleRun> console_runs(std::vector<ConsoleFile> files, frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::console
