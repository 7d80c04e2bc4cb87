// SPDX-License-Identifier: Apache-2.0
// Which module of a network a tensor belongs to, and what that module does.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// A tensor's name without its role: "conv1.weight" of "weight_grad/conv1.weight".
std::string_view path_of(std::string_view tensor_name);

/// The modules of one log, known by the weights they hold and by the network's text in the manifest
/// (about.network.text, as PyTorch prints a module).
class Modules {
 public:
  explicit Modules(const LogFindings& log);

  /// The module a tensor belongs to: the longest known one that its path begins with; where none is
  /// known, the path without the parameter's name or the output's index.
  std::string of(const TensorFindings& tensor) const;

  /// The module's class ("BatchNorm2d"), of "" the network's; empty where the log does not tell.
  std::string_view class_of(const std::string& module) const;
  /// With what it was made of, as far as it is on one line: "Softmax(dim=1)".
  std::string_view text_of(const std::string& module) const;

  /// Every module whose class the log tells, in the order of the text.
  const std::vector<std::string>& with_class() const { return order_; }

 private:
  void read_text(const std::string& text);

  std::map<std::string, std::string, std::less<>> classes_;  ///< texts; empty: known by a weight
  std::vector<std::string> order_;
};

}  // namespace halfscope::analyzers::underflow
