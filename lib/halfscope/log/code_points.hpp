// SPDX-License-Identifier: Apache-2.0
// Code points of UTF-8, and the code points that must not reach a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace halfscope::log {

/// A code point and its length in bytes; length 0 if the bytes are not valid UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t length;
};

/// Decodes the first code point of `text` by the table of well-formed sequences (Unicode 15, table
/// 3-7): overlong forms, surrogates and values above U+10FFFF are invalid.
CodePoint first_code_point(std::string_view text);

/// Returns true for characters that end the line, control the terminal, or are invisible, so that a
/// text looks like another. All outputs use this rule.
bool is_unsafe(char32_t c);

}  // namespace halfscope::log
