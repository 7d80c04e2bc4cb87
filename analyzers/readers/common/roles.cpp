// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/roles.hpp"

#include <algorithm>

namespace halfscope::analyzers::readers::common {

using frames::RoleSource;
using frames::Selection;
using frames::Unnamed;
using log::Role;

namespace {

using Words = std::vector<std::string_view>;

/// The names of the states of PyTorch's optimizers (torch/optim).
constexpr std::string_view kStates[] = {"exp_avg",   "exp_avg_sq", "max_exp_avg_sq",
                                        "exp_inf",   "square_avg", "grad_avg",
                                        "acc_delta", "step",       "momentum_buffer"};
/// The names under which Lightning, accelerate and DeepSpeed keep the state of other objects than
/// model and optimizer.
constexpr std::string_view kNeither[] = {"callbacks",  "lr_scheduler", "lr_schedulers", "scheduler",
                                         "schedulers", "scaler",       "grad_scaler",   "loops",
                                         "rng_state",  "rng_states",   "random_states"};
bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool is_optimizer_state(const std::vector<std::string_view>& parts) {
  if (parts.size() < 2) return false;
  const auto of_optimizer = [](std::string_view part) {
    return part.starts_with("optim") || part == "param_groups";
  };
  if (is_one_of(parts.back(), kStates) || std::ranges::any_of(parts, of_optimizer)) return true;
  return parts.size() > 2 && parts[0] == "state" && is_number(parts[1]);
}

bool speaks_of_gradients(std::string_view text) {
  const auto role = readers::common::role_in_words(text);
  return role == Role::weight_grad || role == Role::activation_grad;
}

std::vector<std::string_view> parts_of(std::string_view name, std::string_view marks) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find_first_of(marks, at), name.size());
    if (end > at) parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

std::pair<Role, RoleSource> role_of(const Selection& s, const std::string& name,
                                    std::optional<Unnamed> unnamed) {
  for (const auto& [glob, role] : s.roles) {
    if (frames::matches(glob, name)) return {role, RoleSource::option};
  }
  if (const auto role = log::role_in_name(name)) return {*role, RoleSource::name};
  // If the user names some roles, the others are not guessed.
  if (!unnamed || !s.roles.empty()) return {Role::unknown, RoleSource::none};
  if (s.unnamed_are_weights) unnamed = Unnamed::weights;
  return {role_of_unnamed(name, *unnamed),
          *unnamed == Unnamed::weights ? RoleSource::file : RoleSource::assumed};
}

Role role_of_unnamed(std::string_view name, Unnamed unnamed) {
  const Words parts = parts_of(name, "./");
  if (is_optimizer_state(parts)) return Role::optimizer_state;
  if (unnamed == Unnamed::gradients) return Role::weight_grad;
  if (!parts.empty() && is_one_of(parts.front(), kNeither)) return Role::unknown;
  return speaks_of_gradients(name) ? *readers::common::role_in_words(name) : Role::weight;
}

}  // namespace halfscope::analyzers::readers::common
