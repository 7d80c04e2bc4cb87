// SPDX-License-Identifier: Apache-2.0
// Which role a tensor has, by its name, by --role, or by what its file holds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::common {

/// A role by the words of a tag: "gradients/conv1.weight", "conv1.weight.grad", "grad_norm/..." say
/// weight_grad, "parameters/fc.bias" and "weights/fc" say weight, "activations/relu" activation,
/// "grad_output/fc" and "conv1/activation_grad" activation_grad. A word is between anything but
/// letters. A word for gradients holds over others, else the first that is known.
std::optional<log::Role> role_in_words(std::string_view tag);

/// Whether they say so of gradients.
bool speaks_of_gradients(std::string_view text);

/// The parts of a name between these marks.
std::vector<std::string_view> parts_of(std::string_view name, std::string_view marks);

bool is_one_of(std::string_view word, std::span<const std::string_view> words);

/// Whether a name, in parts, is of an optimizer's state: "exp_avg" at the end, "optimizer..." or
/// "param_groups" anywhere, or "state.0.step": Optimizer.state_dict().
bool is_optimizer_state(const std::vector<std::string_view>& parts);

/// The role a name has: by --role, by itself, or (`unnamed`: no name of its file carries one) by
/// what its file holds, unless --role is given at all.
std::pair<log::Role, frames::RoleSource> role_of(
    const frames::Selection& selection, const std::string& name,
    std::optional<frames::Unnamed> unnamed = std::nullopt);

/// What a tensor of such a file is: by default what the file holds; what is called as an
/// optimizer's state ("exp_avg", "optimizer.state.0.step") is that. Beside weights, names may say
/// "grad", and what a checkpoint holds of callbacks and schedulers is neither.
log::Role role_of_unnamed(std::string_view name, frames::Unnamed unnamed);

}  // namespace halfscope::analyzers::readers::common
