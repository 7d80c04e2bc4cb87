// SPDX-License-Identifier: Apache-2.0
// The limits of a format on the axis of unscaled magnitudes, the range of magnitudes that a page's
// charts show, and the parameters of their specifications, which are files:
// reports/assets/charts/README.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::charts {

/// One limit: its position on a log2 axis of unscaled magnitudes, and its text, as "65520/2^10".
struct Limit {
  double position = 0;
  std::string label;
};

struct Limits {
  Limit zero;       ///< values at or below it become zero
  Limit subnormal;  ///< values below it become subnormal
  Limit overflow;   ///< values from here on overflow: the largest finite value plus half an ulp
};

/// Returns the limits. If subnormals are flushed, `zero` is at the smallest normal number.
Limits limits_of(const analyzers::underflow::Target& target, double scale);

/// Settings common to all charts of a page, so that the charts can be compared.
struct Window {
  analyzers::underflow::Target target;
  double loss_scale = 1.0;         ///< the scale of the findings, drawn as "now"
  std::optional<int> recommended;  ///< log2 of the recommended scale; nullopt if there is none
  std::string_view recommended_as = "recommended";  ///< answer::advised_word()
  std::optional<int> lowest, highest;
  int first_exponent = 0;  ///< the charts show 2^first_exponent to 2^last_exponent
  int last_exponent = 0;
};

/// Returns a window with all limits of the format at both scales, and with all values but the
/// smallest and the largest hundredth of each role: a few extreme values would compress the rest.
Window window_of(const analyzers::underflow::Analysis& analysis,
                 const analyzers::recommend::Recommendation& advice);
/// Returns a window by the tensors that a loss scale acts on.
Window gradient_window(const analyzers::underflow::Analysis& analysis,
                       const analyzers::recommend::Recommendation& advice);
/// Returns the window without the scales, for tensors that no loss scale acts on.
Window unscaled(Window window);

/// Returns which values are outside a window, as a sentence that begins with a space; an empty
/// string if there are none.
std::string left_out(const Window& window,
                     const std::vector<analyzers::underflow::BinadeCount>& binades);

/// A scale at which limits are drawn.
struct Scale {
  double scale;
  bool advised;
};
/// Returns the scale of the findings and, if it is different, the recommended scale.
std::vector<Scale> scales_of(const Window& window);

/// The binades that the map of updates shows: all but the smallest and largest thousandth of the
/// weights and of the updates, and only the largest of the updates that become zero in the format.
struct UpdateWindow {
  int first_weight = 0, end_weight = 0;
  int first_update = 0, end_update = 0;
  std::uint64_t left_out = 0;  ///< number of updates outside, including those of zero weights
};
UpdateWindow update_window(const UpdateTable& table, const analyzers::underflow::Target& target);
/// Returns the exponent of the smallest drawn ratio of update to weight; all smaller ones are lost.
int first_ratio(const analyzers::underflow::Target& target);

// Parameters of specifications, by name.
nlohmann::ordered_json series_parameters(const Window& window);
/// For the histogram of all gradients.
nlohmann::ordered_json gradient_parameters(const Window& window);
nlohmann::ordered_json update_map_parameters(const UpdateWindow& window,
                                             const analyzers::underflow::Target& target);
nlohmann::ordered_json ratio_parameters(const analyzers::underflow::Target& target);

/// Limits on the number of weights, tensors and lines drawn, so that they can be distinguished.
inline constexpr std::size_t kWeightsDrawn = 40, kBarsDrawn = 24, kRoomsDrawn = 12, kLinesDrawn = 6,
                             kPolicyRowsDrawn = 16;

// Rows for the charts of magnitudes and scales, for notebooks. On a page, assets/charts.js makes
// them from the page's data. Their fields are in assets/charts/README.md.
nlohmann::ordered_json bar_rows(const answer::Series& series);
nlohmann::ordered_json cell_rows(const answer::Series& series);
/// `series` must be the sum of `tensors`.
nlohmann::ordered_json scale_rows(const answer::Tensors& tensors, const answer::Series& series,
                                  const analyzers::underflow::Target& target);

}  // namespace halfscope::reports::charts
