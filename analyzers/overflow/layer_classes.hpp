// SPDX-License-Identifier: Apache-2.0
// What classes of torch.nn do with a positive factor of their input, or of their weights. Internal
// to layer_shift.cpp.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::overflow {

/// f(a x) = a f(x) for every a > 0: ReLU, pooling, dropout...
bool commutes(std::string_view type);
/// W x + b: a factor of x can be one of W.
bool is_linear(std::string_view type);
/// The output is linear in weight and bias: is_linear(), and normalisations.
bool scales_output(std::string_view type);

/// Two layers by their places in the network's text.
class Sequence {
 public:
  Sequence(const underflow::Modules& modules, std::string_view layer, std::string_view next);
  /// Both are parts of one torch.nn.Sequential, in that order, maybe with others in between.
  bool is_one() const { return is_one_; }
  /// Of these others all.
  bool commutes_between() const { return commutes_between_; }

 private:
  bool is_one_ = false, commutes_between_ = true;
};

}  // namespace halfscope::analyzers::overflow
