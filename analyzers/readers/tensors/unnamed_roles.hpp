// SPDX-License-Identifier: Apache-2.0
// What the tensors of a file are in which no name carries a role. A loss scale acts on gradients:
// a model's weights must not be taken for them. The rules are in docs/folders.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// What shows that a file holds a model's weights, as the end of "it ..."; empty where nothing
/// does, and where its name speaks of gradients, unless these have a branch of their own.
std::string weights_shown(const std::filesystem::path& file, const log::TensorFile& opened);

/// Whether some name carries a role.
bool any_role_in(const std::vector<std::string>& names);

/// What the tensors of one of a folder's files are whose names carry no role; empty where others'
/// do.
std::optional<frames::Unnamed> unnamed_in(const TensorFolder& folder, const StepFile& file);

}  // namespace halfscope::analyzers::readers::tensors
