// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/layer_classes.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace halfscope::analyzers::overflow {
namespace {

/// Returns "Conv" for "Conv2d"; other names are returned unchanged.
std::string_view without_dimensions(std::string_view type) {
  const bool has = type.size() > 2 && type.back() == 'd' && type[type.size() - 2] >= '1' &&
                   type[type.size() - 2] <= '3';
  return has ? type.substr(0, type.size() - 2) : type;
}

/// Returns true if a class is one of these words.
bool is_one_of(std::string_view words, std::string_view type) {
  const std::string word = " " + std::string(without_dimensions(type)) + " ";
  return !type.empty() && words.find(word) != std::string_view::npos;
}

bool is_within(std::string_view module, std::string_view container) {
  return container.empty() ||
         (module.starts_with(container) &&
          (module.size() == container.size() || module[container.size()] == '.'));
}

std::string_view parent(std::string_view module) {
  const std::size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
}

/// Returns true if every container of a module up to and including `top` is a Sequential.
bool in_sequentials(const underflow::Modules& modules, std::string_view module,
                    std::string_view top) {
  while (module != top) {
    module = parent(module);
    if (modules.class_of(std::string(module)) != "Sequential") return false;
  }
  return true;
}

}  // namespace

bool commutes(std::string_view type) {
  return is_one_of(
      " ReLU LeakyReLU PReLU RReLU MaxPool AvgPool AdaptiveMaxPool AdaptiveAvgPool MaxUnpool "
      "FractionalMaxPool Dropout FeatureDropout Flatten Unflatten Identity PixelShuffle "
      "PixelUnshuffle ChannelShuffle Upsample UpsamplingNearest UpsamplingBilinear ZeroPad "
      "ReflectionPad ReplicationPad CircularPad Unfold ",
      type);
}

bool is_linear(std::string_view type) {
  // Conv1D is Hugging Face's linear layer of GPT-2; without_dimensions() does not shorten it.
  return is_one_of(" Linear Conv ConvTranspose Conv1D ", type);
}

bool scales_output(std::string_view type) {
  return is_linear(type) || is_one_of(
                                " BatchNorm SyncBatchNorm InstanceNorm LayerNorm GroupNorm "
                                "RMSNorm Embedding ",
                                type);
}

Sequence::Sequence(const underflow::Modules& modules, std::string_view layer,
                   std::string_view next) {
  const auto& order = modules.with_class();
  const auto first = std::ranges::find(order, layer);
  const auto last = std::find(first, order.end(), next);
  if (last == order.end()) return;
  std::string_view top = parent(layer);
  while (!is_within(next, top)) top = parent(top);
  is_one_ = in_sequentials(modules, layer, top) && in_sequentials(modules, next, top);
  if (!is_one_) return;
  commutes_between_ = std::all_of(std::next(first), last, [&](const std::string& between) {
    const std::string_view type = modules.class_of(between);
    return type == "Sequential" || commutes(type);
  });
}

}  // namespace halfscope::analyzers::overflow
