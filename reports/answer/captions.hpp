// SPDX-License-Identifier: Apache-2.0
// What stands above a chart: its title, what it shows, and what its marks mean.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// What a style of line or fill stands for.
struct Key {
  std::string_view style;  ///< "advised", "now", "perhaps"
  std::string text;
};

struct Caption {
  std::string title;
  std::string note = {};
  std::vector<Key> keys = {};
};

/// left_out: whether some updates are not drawn.
Caption update_map_caption(const analyzers::underflow::Target& target, bool left_out);
/// first: the smallest exponent of a ratio that is drawn.
Caption update_ratios_caption(int first);
Caption update_errors_caption();
/// drawn: how many weights at most.
Caption outcomes_caption(std::size_t drawn);
Caption headroom_caption(const analyzers::Study& study);
Caption headroom_steps_caption();
Caption policy_scales_caption();
Caption policy_flushed_caption();
Caption timeline_caption(const analyzers::Findings& found);
/// tensors: map_title() of the tensors of a heat map.
Caption quantised_caption(const std::string& tensors);
/// That the heat maps of such tensors show nothing.
std::string quiet_text(const std::vector<std::string>& tensors);
Caption fits_caption();

/// Below the curves over scales: which range is shaded; empty where there is none.
std::string window_note(const analyzers::recommend::Recommendation& advice);

/// " Not drawn: 3 values below 2^-60."; empty where there are none. side: "below".
std::string not_drawn_text(const Interval& values, std::string_view side, int exponent);

/// Whether some counts are known between bounds only; how that is drawn.
bool bounded(const analyzers::underflow::Analysis& analysis);
Caption bounds_caption();
/// How to read the curves over scales.
std::string curves_hint(bool bounded);

}  // namespace halfscope::reports::answer
