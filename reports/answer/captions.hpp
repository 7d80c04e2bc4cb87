// SPDX-License-Identifier: Apache-2.0
// Captions of charts: the title, what the chart shows, and the meaning of its marks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// The meaning of one style of lines or fills.
struct Key {
  std::string_view style;  ///< a class of the style sheet: "advised", "now", "perhaps"
  std::string text;
};

struct Caption {
  std::string title;
  std::string note = {};
  std::vector<Key> keys = {};
};

/// `left_out`: true if some updates are not drawn.
Caption update_map_caption(const analyzers::underflow::Target& target, bool left_out);
/// `first`: the smallest exponent of a ratio that is drawn.
Caption update_ratios_caption(int first);
Caption update_errors_caption();
/// `drawn`: the largest number of weights that are drawn.
Caption outcomes_caption(std::size_t drawn);
Caption headroom_caption(const analyzers::Study& study);
Caption headroom_steps_caption();
Caption policy_scales_caption();
Caption policy_flushed_caption();
Caption timeline_caption(const analyzers::Findings& found);
/// `tensors`: the map_title() of the tensors in the heat map.
Caption quantised_caption(const std::string& tensors);
/// Returns the sentence on tensors without a heat map: their underflow is below the lowest limit.
std::string quiet_text(const std::vector<std::string>& tensors);
Caption fits_caption();

/// Returns the note below the curves over scales: the range that is shaded. Empty if none is.
std::string window_note(const analyzers::recommend::Recommendation& advice);

/// Returns " Not drawn: 3 values below 2^-60.", or an empty string if there are no values. `side`:
/// "below" or "at or above".
std::string not_drawn_text(const Interval& values, std::string_view side, int exponent);

/// Returns true if some counts are known only between bounds.
bool bounded(const analyzers::underflow::Analysis& analysis);
Caption bounds_caption();
/// Returns a hint how to read the curves over scales.
std::string curves_hint(bool bounded);

}  // namespace halfscope::reports::answer
