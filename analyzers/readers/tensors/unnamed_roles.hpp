// SPDX-License-Identifier: Apache-2.0
// Decides whether a file without roles in its tensor names holds gradients or weights: only
// gradients carry a loss scale. The rules are in docs/folders.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns the reason why a file holds a model's weights, as the end of a sentence "it ...". Empty
/// if there is no reason. Also empty if the file's name has a word for gradients, unless the file
/// keeps gradients in a branch of their own ("grads.fc.weight") beside other tensors.
std::string weights_shown(const std::filesystem::path& file, const log::TensorFile& opened);

/// Returns true if some name has a role.
bool any_role_in(const std::vector<std::string>& names);

/// Returns what a file without roles in its names holds; empty if any name in the folder has a
/// role.
std::optional<frames::Unnamed> unnamed_in(const TensorFolder& folder, const StepFile& file);

}  // namespace halfscope::analyzers::readers::tensors
