// SPDX-License-Identifier: Apache-2.0
// Words below and beside a histogram of gradients, in the terminal and on the page.
#pragma once

#include <cstdint>
#include <string>

#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

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
