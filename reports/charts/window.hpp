// SPDX-License-Identifier: Apache-2.0
// What a chart shows: which magnitudes, and how it counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::charts {

/// What all charts of a page share, so that they compare by eye.
struct Window {
  analyzers::underflow::Target target;
  double loss_scale = 1.0;                          ///< the scale the findings are for: "now"
  std::optional<int> recommended;                   ///< log2
  std::string_view recommended_as = "recommended";  ///< answer::advised_word()
  std::optional<int> lowest, highest;
  int first_exponent = 0;  ///< magnitudes shown: 2^first_exponent to 2^last_exponent
  int last_exponent = 0;
};

/// Whether the vertical axis is linear, or logarithmic to show what is rare.
enum class Axis : std::uint8_t { linear, logarithmic };

}  // namespace halfscope::reports::charts
