// SPDX-License-Identifier: Apache-2.0
// The order in which a training step computes its tensors, as far as a log shows it, and the
// tensors that each is computed from.
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

/// Returns the part of a tensor's name after its role: "conv1.weight" for
/// "weight_grad/conv1.weight". For an optimizer's state, the kind of state is removed too.
std::string_view path_of(const TensorFindings& tensor);

/// PhaseCallback of a step in their order. Weights exist at the start; the gradients are computed
/// backward; `optimizer` has the optimizer's results.
enum class Phase : std::uint8_t { weights, forward, loss, backward, optimizer, unknown };
Phase phase_of(log::Role role);

/// A tensor that another is computed from.
struct Origin {
  std::size_t tensor;  ///< index into LogFindings::tensors
  std::string_view relation;
};

/// The tensors of one log in the order of computation. The forward order is that of the activation
/// records. Gradients run backward through it, an output's gradient before the weight gradients
/// computed from it. A weight whose module has no activation keeps its position among the weights.
class ComputationOrder {
 public:
  /// Keeps a reference to the log.
  explicit ComputationOrder(const LogFindings& log);

  /// Indices into LogFindings::tensors in the order of computation.
  const std::vector<std::size_t>& tensors() const { return tensors_; }
  /// Returns the forward position of the module of a weight, an activation or their gradients.
  std::optional<std::size_t> place_of(std::size_t tensor) const {
    return module_[tensor] == kNone ? std::nullopt : std::optional(module_[tensor]);
  }
  /// Returns the recorded tensors that a tensor is computed from.
  std::vector<Origin> origins(std::size_t tensor) const;
  /// Returns the gradient that a gradient is computed from; empty if it is not recorded.
  std::optional<std::size_t> incoming_gradient(std::size_t tensor) const;

 private:
  /// A module of the network: its tensors and its position in the forward order.
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
  // Keys are parts of the names in log_.
  std::unordered_map<std::string_view, std::size_t> paths_;  ///< module path -> module
  /// Tensor name -> index; filled at the first look-up.
  mutable std::unordered_map<std::string_view, std::size_t> names_;
  std::vector<std::size_t> module_;  ///< module of each tensor, or kNone
};

}  // namespace halfscope::analyzers::underflow
