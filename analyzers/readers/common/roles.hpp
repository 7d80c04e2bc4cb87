// SPDX-License-Identifier: Apache-2.0
// The role of a tensor: by its name, by --role, or by the content of its file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::common {

/// Returns the role that the words of a tag name: weight_grad for "gradients/conv1.weight",
/// "conv1.weight.grad" and "grad_norm/...", weight for "parameters/fc.bias" and "weights/fc",
/// activation for "activations/relu", activation_grad for "grad_output/fc" and
/// "conv1/activation_grad". All characters but letters separate words. If several words name roles,
/// a word for gradients wins, else the first.
std::optional<log::Role> role_in_words(std::string_view tag);

/// Returns true if the words of a tag name a role of gradients.
bool speaks_of_gradients(std::string_view text);

/// Splits a name at each character of `marks`; empty parts are omitted.
std::vector<std::string_view> parts_of(std::string_view name, std::string_view marks);

bool is_one_of(std::string_view word, std::span<const std::string_view> words);

/// Returns true if the parts of a name are those of an optimizer's state: "exp_avg" at the end,
/// "optimizer..." or "param_groups" anywhere, or "state.0.step" as in Optimizer.state_dict().
bool is_optimizer_state(const std::vector<std::string_view>& parts);

/// Returns a tensor's role by --role, or else by its name. `unnamed` is the content of a file in
/// which no name has a role, else empty; it decides if there is no --role. The selection may say
/// that it is weights.
std::pair<log::Role, frames::RoleSource> role_of(
    const frames::Selection& selection, const std::string& name,
    std::optional<frames::Unnamed> unnamed = std::nullopt);

/// The role of a tensor in a file without roles: that of the file's content, or optimizer_state if
/// its name is that of an optimizer's state ("exp_avg", "optimizer.state.0.step"). In a file of
/// weights, a name with a word for gradients has that word's role, and the state of callbacks and
/// schedulers has the role unknown.
log::Role role_of_unnamed(std::string_view name, frames::Unnamed unnamed);

}  // namespace halfscope::analyzers::readers::common
