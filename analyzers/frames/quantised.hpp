// SPDX-License-Identifier: Apache-2.0
// Statistics that a training framework measured while it rounded tensors to FP8 or FP4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::frames {

/// How a tensor is scaled and rounded, by the names of Transformer Engine.
enum class Recipe : std::uint8_t {
  own,  ///< the log does not name it: it is the one that the run trained with
  fp8_delayed_scaling,
  fp8_current_scaling,
  fp8_block_scaling,
  mxfp8,
  nvfp4
};
/// "fp8_delayed_scaling"; of `own` "own".
std::string_view name_of(Recipe recipe);

enum class QuantisedStatistic : std::uint8_t {
  underflows,     ///< percent of all elements that are not zero and become zero
  overflows,      ///< percent of all elements that are clipped to the largest number
  scale_inv_min,  ///< the least of the factors that quantised values are multiplied by
  scale_inv_max,
  mse  ///< mean squared error
};

/// A statistic at a step: where a number lies that was printed rounded.
struct QuantisedValue {
  std::int64_t step = 0;
  double low = 0, high = 0;  ///< finite
};

/// One statistic of one tensor over the selected steps.
struct QuantisedSeries {
  std::string_view layer;   ///< "model.layers.3.mlp.fc1"
  std::string_view tensor;  ///< of the layer: "gradient", "activation", "weight"; may be empty
  log::Role role = log::Role::unknown;
  Recipe recipe = Recipe::own;
  bool columnwise = false;  ///< of the tensor as its transpose is quantised
  QuantisedStatistic statistic = QuantisedStatistic::underflows;
  std::span<const QuantisedValue> values;  ///< ascending, one a step; at least one
  /// All selected steps of which the log has such statistics, of any tensor; ascending.
  std::span<const std::int64_t> log_steps;
};

/// A tensor's whole name: "model.layers.3.mlp.fc1_gradient".
std::string tensor_of(std::string_view layer, std::string_view tensor);

}  // namespace halfscope::analyzers::frames
