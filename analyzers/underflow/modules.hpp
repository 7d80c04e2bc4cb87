// SPDX-License-Identifier: Apache-2.0
// The module of a network that a tensor belongs to, and that module's class.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Returns a tensor's name without its role: "conv1.weight" for "weight_grad/conv1.weight".
std::string_view path_of(std::string_view tensor_name);

/// The modules of one log, known from its weights and from the network's text in the manifest
/// (about.network.text, as PyTorch prints a module).
class Modules {
 public:
  explicit Modules(const LogFindings& log);

  /// Returns the module a tensor belongs to: the longest known module path that its own path begins
  /// with. If none is known, its path without the parameter's name or the output's index.
  std::string of(const TensorFindings& tensor) const;

  /// Returns the module's class ("BatchNorm2d"), for "" the network's; empty if the log lacks it.
  std::string_view class_of(const std::string& module) const;
  /// Returns the class with its arguments, as far as they are on one line: "Softmax(dim=1)".
  std::string_view text_of(const std::string& module) const;

  /// Every module whose class the log has, in the order of the network's text.
  const std::vector<std::string>& with_class() const { return order_; }

 private:
  void read_text(const std::string& text);

  std::map<std::string, std::string, std::less<>> classes_;  ///< texts; empty: known by a weight
  std::vector<std::string> order_;
};

}  // namespace halfscope::analyzers::underflow
