// SPDX-License-Identifier: Apache-2.0
// CSV files of the training monitor of Ascend's msprobe.
#pragma once

#include <filesystem>

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::readers {

bool is_msprobe(const std::filesystem::path& log);

/// As Kind::read: a file, a folder of files, or a folder with a folder for each rank.
void read_msprobe(const std::filesystem::path& log, const TimelineSelection& selection,
                  const analyzers::Visitor& visit, analyzers::Notes& notes,
                  const analyzers::Progress& progress);

}  // namespace halfscope::readers
