// SPDX-License-Identifier: Apache-2.0
// Which files of a folder of console logs are of one run.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "analyzers/readers/console/console_survey.hpp"

namespace halfscope::analyzers::readers::console {

struct ConsoleFile {
  std::filesystem::path path;
  Survey survey;
};

/// Files of one run in the order of their steps: each goes on from the one before, and holds where
/// both have a step. Last, those that tell no steps.
using ConsoleRun = std::vector<ConsoleFile>;

/// Several ranks' files of one run are one file, that of the first rank. Files that overlap in part
/// or follow each other are a run that was started again; others are runs of their own.
std::vector<ConsoleRun> console_runs(std::vector<ConsoleFile> files, frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::console
