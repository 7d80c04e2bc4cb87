// SPDX-License-Identifier: Apache-2.0
// The order in which a training step computes its tensors, as far as a log tells, and what each is
// computed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// The part of a tensor's name after its role: "conv1.weight" of "weight_grad/conv1.weight"; of an
/// optimizer's state also without the kind of state.
std::string_view path_of(const TensorFindings& tensor);

/// Parts of a step: weights are there first, then the forward pass, the loss, the gradients
/// backward, and what the optimizer makes.
enum class Phase : std::uint8_t { weights, forward, loss, backward, optimizer, unknown };
Phase phase_of(log::Role role);

/// A tensor's source, by what it is to the tensor.
struct Origin {
  std::size_t tensor;  ///< index into LogFindings::tensors
  std::string_view relation;
};

/// The tensors of one log in the order of computation. The forward order is that of the activation
/// records; gradients run backward through it, an output's gradient before the weight gradients it
/// makes. A weight whose module has no activation keeps its place among the weights.
class ComputationOrder {
 public:
  /// Refers to the log.
  explicit ComputationOrder(const LogFindings& log);

  /// Indices into LogFindings::tensors, what is computed first first.
  const std::vector<std::size_t>& tensors() const { return tensors_; }
  /// The place of the module of a weight, an activation or their gradients in the forward order.
  std::optional<std::size_t> place_of(std::size_t tensor) const {
    return module_[tensor] == kNone ? std::nullopt : std::optional(module_[tensor]);
  }
  /// What a tensor is computed from, as far as it is recorded.
  std::vector<Origin> origins(std::size_t tensor) const;
  /// The gradient that flowed into a gradient, where it is recorded.
  std::optional<std::size_t> incoming_gradient(std::size_t tensor) const;

 private:
  /// A module of the network: what it holds, and where it stands in the forward order.
  struct Module {
    double position = 0;
    std::optional<std::size_t> activation, activation_grad;
    std::vector<std::size_t> weights;
  };
  std::optional<std::size_t> find(std::string_view role, std::string_view path) const;
  void add_activations(const std::vector<std::size_t>& tensors);
  void add_weights(const std::vector<std::size_t>& tensors);
  void add_gradients(const std::vector<std::size_t>& tensors);
  std::size_t module_at(std::string_view path, double position);
  void sort_modules();
  void sort_tensors();
  std::optional<std::size_t> activation_before(std::size_t module) const;
  std::optional<std::size_t> gradient_after(std::size_t module) const;

  const LogFindings& log_;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> tensors_;
  std::vector<Module> modules_;  ///< in the forward order
  // By parts of the names in log_.
  std::unordered_map<std::string_view, std::size_t> paths_;  ///< module path -> module
  /// Tensor's name -> tensor; made when it is asked for first.
  mutable std::unordered_map<std::string_view, std::size_t> names_;
  std::vector<std::size_t> module_;  ///< of each tensor, or kNone
};

}  // namespace halfscope::analyzers::underflow
