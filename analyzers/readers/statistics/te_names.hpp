// SPDX-License-Identifier: Apache-2.0
// The names under which Transformer Engine's debug features log statistics.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "analyzers/frames/quantised.hpp"

namespace halfscope::analyzers::readers::statistics {

/// A statistic of a tensor in high precision (LogTensorStats).
enum class Magnitude : std::uint8_t { min, max, amax, norm, dynamic_range };
inline constexpr std::size_t kMagnitudes = 5;

/// A statistic of a quantised tensor (LogFp8TensorStats, LogNvfp4TensorStats).
struct Quantised {
  frames::QuantisedStatistic statistic = frames::QuantisedStatistic::underflows;
  frames::Recipe recipe = frames::Recipe::own;
  bool columnwise = false;
};

/// The parts of a logged name such as "mlp.fc1_gradient_mxfp8_underflows%_columnwise". They refer
/// to the text of the logged name, which must outlive them.
struct TeName {
  std::string_view tensor;  ///< "mlp.fc1_gradient"
  std::string_view layer;   ///< "mlp.fc1"; equal to `tensor` if there is no kind
  std::string_view kind;    ///< "gradient"; empty if the name has no known kind
  log::Role role = log::Role::unknown;
  std::variant<Magnitude, Quantised> statistic;
};

/// Splits a logged name. Empty if it does not end with the name of a known statistic.
std::optional<TeName> te_name(std::string_view logged);

}  // namespace halfscope::analyzers::readers::statistics
