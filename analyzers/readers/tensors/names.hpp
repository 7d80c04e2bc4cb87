// SPDX-License-Identifier: Apache-2.0
// Finds steps in the names of files and folders, and signs of weights in the names of tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns the step in a file's or folder's name: the number after the last word "step",
/// "checkpoint", "iteration" or "iter" in any case ("step-000012", "step=12", "step12"); else
/// empty.
std::optional<std::int64_t> step_in_name(std::string_view name);

/// Returns a name without its step and the separator before it: "fc" for "fc_step12".
std::string without_step(const std::string& name);

/// Returns the reason why a file without roles in its tensor names holds a model's weights, as the
/// end of a sentence "it ...": only gradients carry a loss scale. Empty if there is no reason. Also
/// empty if the file's name has a word for gradients, unless the file keeps gradients in a branch
/// of their own ("grads.fc.weight") beside other tensors. The rules are in docs/folders.md.
std::string weights_shown(const std::filesystem::path& file, const log::TensorFile& opened);

}  // namespace halfscope::analyzers::readers::tensors
