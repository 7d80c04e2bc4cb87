// SPDX-License-Identifier: Apache-2.0
// What the charts of a page show: which magnitudes, and the parameters of their specifications.
// The specifications are files: reports/assets/charts/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/recommend/recommend.hpp"
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

/// A window that shows all limits of the format at both scales and all but the outermost hundredths
/// of every role: a few values far out would press the rest into a line.
Window window_of(const analyzers::underflow::Analysis& analysis,
                 const analyzers::recommend::Recommendation& advice);
/// The same for gradients alone.
Window gradient_window(const analyzers::underflow::Analysis& analysis,
                       const analyzers::recommend::Recommendation& advice);
/// The same without what a loss scale changes.
Window unscaled(Window window);

/// What a window leaves out, as a sentence that begins with a space; empty when it shows all.
std::string left_out(const Window& window,
                     const std::vector<analyzers::underflow::BinadeCount>& binades);

/// A scale whose limits are drawn.
struct Scale {
  double scale;
  bool advised;
};
/// One scale, or two when the recommended one differs from the one the findings are for.
std::vector<Scale> scales_of(const Window& window);

/// The binades that the map of updates shows: all but the outermost thousandths of both, and of the
/// updates that are zero in the format only the largest.
struct UpdateWindow {
  int first_weight = 0, end_weight = 0;
  int first_update = 0, end_update = 0;
  std::uint64_t left_out = 0;  ///< updates outside, those of zero weights included
};
UpdateWindow update_window(const UpdateTable& table, const analyzers::underflow::Target& target);
/// The smallest ratio of update to weight drawn, as an exponent: far below it all are lost.
int first_ratio(const analyzers::underflow::Target& target);

// Parameters, by name; parameters.cpp.
/// Of the histogram and the heat map of magnitudes and of the curves by scale.
nlohmann::ordered_json series_parameters(const Window& window);
/// Of the histogram of all gradients.
nlohmann::ordered_json gradient_parameters(const Window& window);
nlohmann::ordered_json update_map_parameters(const UpdateWindow& window,
                                             const analyzers::underflow::Target& target);
nlohmann::ordered_json ratio_parameters(const analyzers::underflow::Target& target);

/// Most weights, tensors and lines drawn: more cannot be told apart.
inline constexpr std::size_t kWeightsDrawn = 40, kBarsDrawn = 24, kRoomsDrawn = 12, kLinesDrawn = 6,
                             kPolicyRowsDrawn = 16;

}  // namespace halfscope::reports::charts
