// SPDX-License-Identifier: Apache-2.0
// Which files of a folder are event files of TensorBoard.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensorboard {

/// The event files of a folder, in the order of their names; the file itself where it is one. By
/// what they begin with; and those of a folder whose names say so, since their beginning may be
/// damaged. Throws nothing.
std::vector<log::OpenPath> event_files_of(const log::OpenPath& log);

/// The first folder below that holds event files and is not a run log of Halfscope, if there is
/// one; looked for among so many that it takes no time.
std::optional<std::filesystem::path> folder_with_events_in(const std::filesystem::path& folder);

}  // namespace halfscope::analyzers::readers::tensorboard
