// SPDX-License-Identifier: Apache-2.0
// Effects of a positive factor in the input or the weights of torch.nn's classes. Internal to
// layer_shift.cpp.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::overflow {

/// Returns true if f(a x) = a f(x) for every a > 0: ReLU, pooling, dropout...
bool commutes(std::string_view type);
/// Returns true for W x + b: a factor of x can be moved into W.
bool is_linear(std::string_view type);
/// Returns true if the output is linear in weight and bias: is_linear(), and normalisations.
bool scales_output(std::string_view type);

/// Two layers by their positions in the network's text.
class Sequence {
 public:
  Sequence(const underflow::Modules& modules, std::string_view layer, std::string_view next);
  /// Returns true if both are in one torch.nn.Sequential, in this order, adjacent or not.
  bool is_one() const { return is_one_; }
  /// Returns true if all layers between the two commute.
  bool commutes_between() const { return commutes_between_; }

 private:
  bool is_one_ = false, commutes_between_ = true;
};

}  // namespace halfscope::analyzers::overflow
