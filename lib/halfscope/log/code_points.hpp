// SPDX-License-Identifier: Apache-2.0
// Code points of UTF-8, and those that must not reach a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace halfscope::log {

/// A code point and the bytes it takes; length 0 when the bytes are no UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t length;
};

/// The first code point of `text`, by the table of well-formed sequences (Unicode 15, table 3-7):
/// overlong forms, surrogates and values above U+10FFFF are refused.
CodePoint first_code_point(std::string_view text);

/// Characters that would leave the line, drive the terminal, or make the text look like another
/// one because they are invisible. The one rule for every output.
bool is_unsafe(char32_t c);

}  // namespace halfscope::log
