// SPDX-License-Identifier: Apache-2.0
// Captions of charts: the title, what the chart shows, and the meaning of its marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/series.hpp"

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

inline const Caption kUpdateErrorsCaption = {
    "Error of what is applied", "The change of the weight, against the change asked for."};
inline const Caption kHeadroomStepsCaption = {
    "Over the steps",
    "The tensors with the least headroom. Growth is the trend over the recorded steps."};
inline const Caption kPolicyScalesCaption = {
    "Loss scale over the steps",
    "Each line is a policy, or several that did the same. Marks are steps it would have "
    "skipped. Point at one for exact numbers."};
inline const Caption kPolicyFlushedCaption = {
    "Gradients flushed to zero under each policy",
    "Mean over the steps with histograms, least first: solid is surely flushed, paler and "
    "dashed may be. The dot is the worst step, at most."};
inline const Caption kFitsCaption = {
    "Narrowest format, tensors of each role",
    "Each colour is a format. Point at a bar to see how many tensors need a scale of their own."};
inline const Caption kRecipesCaption = {
    "Signal-to-noise ratio of the operands, worst layers first",
    "Each colour is a recipe, each shape a product; farther left is noisier. The strokes are where "
    "numbers of a normal distribution lie by the same recipe. 3 dB to their left the noise is "
    "twice "
    "as large. Ratios above 60 dB are drawn there."};
inline const Caption kBoundsCaption = {
    "",
    "Solid bars and cells are surely there. Counts that may lie there, in a magnitude beside "
    "it or at zero are",
    {{"perhaps", "paler and dashed"}}};

/// `left_out`: true if some updates are not drawn.
Caption update_map_caption(const analyzers::underflow::Target& target, bool left_out);
/// `first`: the smallest exponent of a ratio that is drawn.
Caption update_ratios_caption(int first);
/// `drawn`: the largest number of weights that are drawn.
Caption outcomes_caption(std::size_t drawn);
Caption headroom_caption(const analyzers::Study& study);
Caption timeline_caption(const analyzers::Findings& found);
/// `tensors`: the map_title() of the tensors in the heat map.
Caption quantised_caption(const std::string& tensors);
/// Returns the sentence on tensors without a heat map: their underflow is below the lowest limit.
std::string quiet_text(const std::vector<std::string>& tensors);

/// Returns the note below the curves over scales: the range that is shaded. Empty if none is.
std::string window_note(const analyzers::recommend::Recommendation& advice);

/// Returns " Not drawn: 3 values below 2^-60.", or an empty string if there are no values. `side`:
/// "below" or "at or above".
std::string not_drawn_text(const Interval& values, std::string_view side, int exponent);

/// Returns true if some counts are known only between bounds.
bool bounded(const analyzers::underflow::Analysis& analysis);
/// Returns a hint how to read the curves over scales.
std::string curves_hint(bool bounded);

/// Returns whose values the bars count, and how many. `sum`: the sum() of `tensors`.
/// `a_binade_each`: true if a bar is one power of two.
std::string histogram_text(const Tensors& tensors, const Series& sum, bool a_binade_each);

/// Returns the number of zeros that may be underflow and that no bar counts; empty if none.
std::string hidden_zeros_text(const Tensors& tensors, const Series& sum);

/// The scale of bars that consist of characters.
struct TextBars {
  std::uint64_t least = 0;  ///< values of one character in logarithmic bars; 0 if bars are linear
  bool bounded = false;     ///< true if some counts are known only between bounds
};
std::string text_bars_text(const analyzers::underflow::Analysis& analysis, const TextBars& bars);

}  // namespace halfscope::reports::answer
