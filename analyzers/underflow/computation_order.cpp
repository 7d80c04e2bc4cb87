// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/computation_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace halfscope::analyzers::underflow {
namespace {

using log::Role;

/// Modules without a position of their own follow another module at this distance. It is so small
/// that far more of them fit between two activations than networks have.
constexpr double kBeside = 1e-6;

/// Returns "conv1" for "conv1.weight", and all of a path that has no separator.
std::string_view module_of_parameter(std::string_view path) {
  return path.substr(0, path.find_last_of("./"));
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_weight(Role role) { return role == Role::weight || role == Role::master_weight; }

bool gradient_of_weight(Role role) {
  return role == Role::weight_grad || role == Role::local_weight_grad;
}

}  // namespace

std::string_view path_of(const TensorFindings& tensor) {
  std::string_view path = tensor.name;
  const int slashes = !log::role_in_name(path) ? 0 : tensor.role == Role::optimizer_state ? 2 : 1;
  for (int i = 0; i < slashes; ++i) {
    const std::size_t slash = path.find('/');
    if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  }
  return path;
}

Phase phase_of(Role role) {
  switch (role) {
    case Role::weight:
    case Role::master_weight: return Phase::weights;
    case Role::activation: return Phase::forward;
    case Role::loss: return Phase::loss;
    case Role::weight_grad:
    case Role::local_weight_grad:
    case Role::activation_grad: return Phase::backward;
    case Role::update:
    case Role::optimizer_state:
    case Role::weight_after: return Phase::optimizer;
    case Role::unknown: return Phase::unknown;
  }
  return Phase::unknown;
}

ComputationOrder::ComputationOrder(const LogFindings& log)
    : log_(log), module_(log.tensors.size(), kNone) {
  std::vector<std::size_t> activations, parameters, gradients;
  for (std::size_t i = 0; i < log.tensors.size(); ++i) {
    const TensorFindings& t = log.tensors[i];
    tensors_.push_back(i);
    if (t.role == Role::activation) activations.push_back(i);
    if (t.role == Role::activation_grad) gradients.push_back(i);
    if (is_weight(t.role) || gradient_of_weight(t.role)) parameters.push_back(i);
  }
  add_activations(activations);
  add_weights(parameters);
  add_gradients(gradients);
  sort_modules();
  sort_tensors();
}

/// Returns the module of a path; adds it at `position` if it is new.
std::size_t ComputationOrder::module_at(std::string_view path, double position) {
  const auto [at, is_new] = paths_.try_emplace(path, modules_.size());
  if (is_new) {
    modules_.emplace_back();
    modules_.back().position = position;
  }
  return at->second;
}

void ComputationOrder::add_activations(const std::vector<std::size_t>& tensors) {
  double position = 0;
  for (const std::size_t i : tensors) {
    const std::size_t module = module_at(path_of(log_.tensors[i]), position += 1.0);
    modules_[module].activation = i;
    module_[i] = module;
  }
  // "lstm.0" may be an output of "lstm", which is the name of the weights' module.
  for (const std::size_t i : tensors) {
    const std::string_view path = path_of(log_.tensors[i]);
    const std::size_t dot = path.rfind('.');
    if (dot != std::string_view::npos && is_number(path.substr(dot + 1))) {
      paths_.try_emplace(path.substr(0, dot), module_[i]);
    }
  }
}

void ComputationOrder::add_weights(const std::vector<std::size_t>& tensors) {
  double position = 0;
  for (const std::size_t i : tensors) {
    const std::string_view path = module_of_parameter(path_of(log_.tensors[i]));
    const std::size_t module = module_at(path, position + kBeside);
    position = modules_[module].position;
    if (is_weight(log_.tensors[i].role)) modules_[module].weights.push_back(i);
    module_[i] = module;
  }
}

/// Gradients are recorded in the order in which the backward pass computes them.
void ComputationOrder::add_gradients(const std::vector<std::size_t>& tensors) {
  double position = 0;
  for (const Module& module : modules_) position = std::max(position, module.position);
  position += kBeside * static_cast<double>(tensors.size() + 1);
  for (const std::size_t i : tensors) {
    const std::size_t module = module_at(path_of(log_.tensors[i]), position - kBeside);
    position = modules_[module].position;
    modules_[module].activation_grad = i;
    module_[i] = module;
  }
}

void ComputationOrder::sort_modules() {
  std::vector<std::size_t> order(modules_.size()), place(modules_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return modules_[a].position < modules_[b].position;
  });
  std::vector<Module> sorted;
  for (const std::size_t i : order) {
    place[i] = sorted.size();
    sorted.push_back(std::move(modules_[i]));
  }
  modules_ = std::move(sorted);
  for (std::size_t& module : module_) {
    if (module != kNone) module = place[module];
  }
  for (auto& [path, module] : paths_) module = place[module];
}

void ComputationOrder::sort_tensors() {
  const auto key = [&](std::size_t i) {
    const Role role = log_.tensors[i].role;
    const auto at = module_[i] == kNone ? 0 : static_cast<std::ptrdiff_t>(module_[i]);
    const bool backward = phase_of(role) == Phase::backward;
    // The update and the optimizer's state come before the next weight; local gradients come before
    // their sum, the weight's gradient.
    const int last = role == Role::weight_grad                                ? 2
                     : gradient_of_weight(role) || role == Role::weight_after ? 1
                                                                              : 0;
    return std::tuple(phase_of(role), backward ? -at : at, last, i);
  };
  std::sort(tensors_.begin(), tensors_.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
}

std::optional<std::size_t> ComputationOrder::find(std::string_view role,
                                                  std::string_view path) const {
  if (names_.empty()) {
    for (std::size_t i = 0; i < log_.tensors.size(); ++i) {
      names_.try_emplace(log_.tensors[i].name, i);
    }
  }
  const auto at = names_.find(std::string(role) + "/" + std::string(path));
  return at == names_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::size_t> ComputationOrder::activation_before(std::size_t module) const {
  while (module-- > 0) {
    if (modules_[module].activation) return modules_[module].activation;
  }
  return std::nullopt;
}

std::optional<std::size_t> ComputationOrder::gradient_after(std::size_t module) const {
  while (++module < modules_.size()) {
    if (modules_[module].activation_grad) return modules_[module].activation_grad;
  }
  return std::nullopt;
}

std::optional<std::size_t> ComputationOrder::incoming_gradient(std::size_t tensor) const {
  const std::size_t module = module_[tensor];
  if (module == kNone) return std::nullopt;
  const auto own = modules_[module].activation_grad;
  if (own && *own != tensor) return own;
  return gradient_after(module);
}

std::vector<Origin> ComputationOrder::origins(std::size_t tensor) const {
  std::vector<Origin> origins;
  const auto add = [&](std::optional<std::size_t> from, std::string_view relation) {
    if (from && *from != tensor) origins.push_back({*from, relation});
  };
  const auto add_weights_of = [&](std::size_t module) {
    if (module >= modules_.size()) return;
    for (const std::size_t weight : modules_[module].weights) add(weight, "weight");
  };
  const TensorFindings& t = log_.tensors[tensor];
  const std::size_t module = module_[tensor] == kNone ? 0 : module_[tensor];
  switch (phase_of(t.role)) {
    case Phase::weights:
      add(find("weight_grad", path_of(t)), "gradient");
      add(find("update", path_of(t)), "update");
      break;
    case Phase::forward:
      add(activation_before(module), "input");
      add_weights_of(module);
      break;
    case Phase::loss: add(activation_before(modules_.size()), "input"); break;
    case Phase::backward:
      add(incoming_gradient(tensor), "output gradient");
      if (gradient_of_weight(t.role)) add(activation_before(module), "input");
      // A gradient flows back through the weights of the module that follows.
      add_weights_of(gradient_of_weight(t.role) ? module : module + 1);
      break;
    case Phase::optimizer:
      add(find("weight_grad", path_of(t)), "gradient");
      add(find("weight", path_of(t)), "weight");
      break;
    case Phase::unknown: break;
  }
  return origins;
}

}  // namespace halfscope::analyzers::underflow
