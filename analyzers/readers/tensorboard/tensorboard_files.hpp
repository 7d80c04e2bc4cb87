// SPDX-License-Identifier: Apache-2.0
// The event files of TensorBoard in a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensorboard {

/// The event files of a folder, by name, or the file itself. An event file is recognised by its
/// beginning; in a folder also by its name, since the beginning may be damaged. Never throws.
std::vector<log::OpenPath> event_files_of(const log::OpenPath& log);

/// The first folder below `folder` that holds event files and is not a run log of Halfscope; empty
/// if none is found. Looks into a bounded number of folders.
std::optional<std::filesystem::path> folder_with_events_in(const std::filesystem::path& folder);

}  // namespace halfscope::analyzers::readers::tensorboard
