// SPDX-License-Identifier: Apache-2.0
// Statistics that a training framework measured while it rounded tensors to FP8 or FP4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::frames {

/// How a tensor is scaled and rounded. The names are those of Transformer Engine.
enum class Recipe : std::uint8_t {
  own,  ///< the recipe of the training run itself; the log does not name it
  fp8_delayed_scaling,
  fp8_current_scaling,
  fp8_block_scaling,
  mxfp8,
  nvfp4
};
/// Returns the recipe's name, such as "fp8_delayed_scaling"; "own" for `own`.
std::string_view name_of(Recipe recipe);

enum class QuantisedStatistic : std::uint8_t {
  underflows,     ///< percent of all elements that are nonzero and become zero
  overflows,      ///< percent of all elements that are clipped to the largest finite number
  scale_inv_min,  ///< smallest factor that quantised values are multiplied by
  scale_inv_max,
  mse  ///< mean squared error
};

/// Bounds of a statistic at one step, since the log's numbers are rounded.
struct QuantisedValue {
  std::int64_t step = 0;
  double low = 0, high = 0;  ///< both finite
};

/// One statistic of one tensor over the selected steps.
struct QuantisedSeries {
  std::string_view layer;   ///< "model.layers.3.mlp.fc1"
  std::string_view tensor;  ///< "gradient", "activation", "weight"; empty: the log does not name it
  log::Role role = log::Role::unknown;
  Recipe recipe = Recipe::own;
  bool columnwise = false;  ///< measured on the transposed tensor
  QuantisedStatistic statistic = QuantisedStatistic::underflows;
  std::span<const QuantisedValue> values;  ///< at least one; one per step, ascending
  /// All selected steps at which the log has such statistics of any tensor, ascending.
  std::span<const std::int64_t> log_steps;
};

/// Returns a tensor's full name: "model.layers.3.mlp.fc1_gradient".
std::string tensor_of(std::string_view layer, std::string_view tensor);

}  // namespace halfscope::analyzers::frames
