// SPDX-License-Identifier: Apache-2.0
// The error message for a text file in which Halfscope recognises no line.
#pragma once

#include <string>
#include <string_view>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

/// A pattern for --lines that matches one line.
struct SuggestedPattern {
  std::string text;      ///< the pattern; empty if the line has no pair of a name and a number
  bool step = false;     ///< the pattern names a step
  bool measure = false;  ///< the pattern names a loss, a gradient norm or a loss scale
};
/// Returns a pattern from a line's first name-number pair on: known numbers become a name in
/// braces, others {}. About 160 characters at most. refuse_text() calls it for each line.
SuggestedPattern pattern_for(std::string_view line);

/// Throws frames::InputNeedsOption for a text file in which no line is recognised. The message says
/// what the lines contain and suggests a --lines pattern for the most frequent form of line.
[[noreturn]] void refuse_text(const log::OpenPath& file);

}  // namespace halfscope::analyzers::readers
