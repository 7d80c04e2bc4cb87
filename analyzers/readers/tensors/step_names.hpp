// SPDX-License-Identifier: Apache-2.0
// Finds step numbers in the names of files and folders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::tensors {

/// Returns the step in a file's or folder's name: the number after the last word "step",
/// "checkpoint", "iteration" or "iter" in any case ("step-000012", "step=12", "step12"); else
/// empty.
std::optional<std::int64_t> step_in_name(std::string_view name);

/// Returns a name without its step and the separator before it: "fc" for "fc_step12".
std::string without_step(const std::string& name);

}  // namespace halfscope::analyzers::readers::tensors
