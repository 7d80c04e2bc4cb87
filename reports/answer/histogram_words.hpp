// SPDX-License-Identifier: Apache-2.0
// What is said of a histogram of gradients, in the terminal and on the page.
#pragma once

#include <cstdint>
#include <string>

#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

/// What bars stand for: whose values, how many. `sum` is of the tensors; a_binade_each: a bar is
/// one power of two.
std::string histogram_text(const Tensors& tensors, const Series& sum, bool a_binade_each);

/// Zeros that no bar stands for and that may be underflow; empty where there are none.
std::string hidden_zeros_text(const Tensors& tensors, const Series& sum);

/// How bars of characters are read.
struct TextBars {
  std::uint64_t least = 0;  ///< what a character is where they are logarithmic; 0: linear
  bool bounded = false;     ///< some counts are known between bounds only
};
std::string text_bars_text(const analyzers::underflow::Analysis& analysis, const TextBars& bars);

}  // namespace halfscope::reports::answer
