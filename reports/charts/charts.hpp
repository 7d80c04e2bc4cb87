// SPDX-License-Identifier: Apache-2.0
// The charts of a page as Vega-Lite specifications. They hold no data but the limits of the format;
// whoever draws one gives it the rows, under the names below.
//
//   "bars"    a histogram: e, low, high, of, of_low; values with magnitude in [2^e, 2^(e+1))
//   "cells"   a heat map: the same with step and last, the recorded steps of the column
//   "scales"  what each scale would do: log2_scale, and the fields of `by_scale`, each a count or
//             [low, high]; share: of the same names, each [low, high]
//
//   "pairs"   updates by binade of weight and of update: w, u, count, lost
//   "ratios"  updates by floor(log2(|update| / |weight|)): e, count, lost
//   "errors"  applied updates by floor(log2(relative error)): e, count
//   "outcomes"  a row a weight and outcome: name, outcome, order, count, of
//   "rooms"   a row a tensor: name, room (binades), step, last, trend
//   "trends"  a row a tensor and step: name, step, room
//   "policy-scales"   of replayed policies, by kind: "scale" (the line, from step, drawn to until,
//                     in truth to last), "last" (its end), "mark" (count skipped steps), "end"
//   "policy-flushed"  a row a policy: name, low, high (mean share), worst, mean_text, worst_text
//   "fits"    a row a role and format: role, format, order, as_is, scaled
//
// `of`: finite nonzero values, at most; of_low: at least. Colours are named styles and ranges,
// which theme() gives.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/charts/window.hpp"

namespace halfscope::reports::charts {

/// A window that shows all limits of the format at both scales and all but the outermost hundredths
/// of every role: a few values far out would press the rest into a line.
Window window_of(const analyzers::underflow::Analysis& analysis,
                 const analyzers::recommend::Recommendation& advice);
/// The same for gradients alone.
Window gradient_window(const analyzers::underflow::Analysis& analysis,
                       const analyzers::recommend::Recommendation& advice);

/// What a window leaves out, as a sentence that begins with a space; empty when it shows all.
std::string left_out(const Window& window,
                     const std::vector<analyzers::underflow::BinadeCount>& binades);

nlohmann::ordered_json histogram(const Window& window, Axis counts);
nlohmann::ordered_json heat_map(const Window& window);
nlohmann::ordered_json scale_curves(const Window& window, Axis shares);

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

/// The histogram at the top of a page, over rows "bars": bars and regions that are lost are
/// coloured, paler where only the recommended scale keeps them; gradient_chart.cpp.
nlohmann::ordered_json gradient_histogram(const Window& window, Axis counts);

// update_charts.cpp
nlohmann::ordered_json update_map(const UpdateWindow& window,
                                  const analyzers::underflow::Target& target);
nlohmann::ordered_json ratio_histogram(const analyzers::underflow::Target& target, Axis counts);
nlohmann::ordered_json error_histogram(Axis counts);
nlohmann::ordered_json outcome_bars();

// overflow_charts.cpp
nlohmann::ordered_json room_bars();
nlohmann::ordered_json room_lines();
nlohmann::ordered_json fit_bars();

// policy_charts.cpp
/// `marks`: name_of() of what happened on some line.
nlohmann::ordered_json policy_scales(const std::set<std::string>& marks);
nlohmann::ordered_json policy_flushed();

/// Most weights, tensors and lines drawn: more cannot be told apart.
inline constexpr std::size_t kWeightsDrawn = 40, kBarsDrawn = 24, kRoomsDrawn = 12, kLinesDrawn = 6,
                             kPolicyRowsDrawn = 16;

enum class Theme : std::uint8_t { light, dark };
/// A Vega-Lite `config`: theme.cpp.
nlohmann::ordered_json theme(Theme which);

}  // namespace halfscope::reports::charts
