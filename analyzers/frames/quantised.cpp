// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/quantised.hpp"

namespace halfscope::analyzers::frames {

std::string_view name_of(Recipe recipe) {
  switch (recipe) {
    case Recipe::own: break;
    case Recipe::fp8_delayed_scaling: return "fp8_delayed_scaling";
    case Recipe::fp8_current_scaling: return "fp8_current_scaling";
    case Recipe::fp8_block_scaling: return "fp8_block_scaling";
    case Recipe::mxfp8: return "mxfp8";
    case Recipe::nvfp4: return "nvfp4";
  }
  return "own";
}

std::string tensor_of(std::string_view layer, std::string_view tensor) {
  std::string name(layer);
  if (!tensor.empty()) name.append("_").append(tensor);
  return name;
}

}  // namespace halfscope::analyzers::frames
