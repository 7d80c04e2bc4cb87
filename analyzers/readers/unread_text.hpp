// SPDX-License-Identifier: Apache-2.0
// The error message for a text file without a line that Halfscope knows.
#pragma once

#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

/// A pattern for --lines that matches a line.
struct SuggestedPattern {
  std::string text;      ///< empty: the line has no pair of a name and a number
  bool step = false;     ///< names a step
  bool measure = false;  ///< names a loss, a gradient norm or a loss scale
};
/// From the first name of a pair on, with names in braces where the meaning is known and {} for
/// other numbers; at most some 160 characters. refuse_text() calls it for each line.
SuggestedPattern pattern_for(std::string_view line);

/// Throws frames::OptionHelps of a text file in which no line is known: with what its lines have,
/// and a pattern for the most frequent form.
[[noreturn]] void refuse_text(const log::OpenPath& file);

}  // namespace halfscope::analyzers::readers
