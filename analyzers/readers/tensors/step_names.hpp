// SPDX-License-Identifier: Apache-2.0
// Steps in the names of files and folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::tensors {

/// The step in a file's or folder's name: the last of "step-000012", "step_12", "step=12",
/// "step12", and the same with "checkpoint", "iteration" and "iter", as a word of its own; any
/// case.
std::optional<std::int64_t> step_in_name(std::string_view name);

/// A name without its step and the marks that joined it to the rest: "fc_step12" is "fc".
std::string without_step(const std::string& name);

}  // namespace halfscope::analyzers::readers::tensors
