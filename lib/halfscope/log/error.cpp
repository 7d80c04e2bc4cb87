// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "halfscope/log/code_points.hpp"

namespace halfscope::log {

CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {0, 0};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return {0, 0};
  char32_t value = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[length] || value > 0x10FFFF || surrogate) return {0, 0};
  return {value, length};
}

bool is_unsafe(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  // Control characters, line ends, and characters without a glyph: Unicode 15's categories Cc, Zl
  // and Zp, the property Default_Ignorable_Code_Point, and the annotation marks of category Cf.
  constexpr Range kUnsafe[] = {
      {0x00, 0x1F},  // C0 controls, line ends and ESC among them
      {0x7F, 0x9F},  // DEL and the C1 controls (U+009B starts a terminal sequence as ESC [ does)
      {0xAD, 0xAD},  // soft hyphen
      {0x034F, 0x034F},    // combining grapheme joiner
      {0x061C, 0x061C},    // Arabic letter mark
      {0x115F, 0x1160},    // Hangul fillers
      {0x17B4, 0x17B5},    // Khmer inherent vowels
      {0x180B, 0x180F},    // Mongolian variation selectors and vowel separator
      {0x200B, 0x200F},    // zero-width space and joiners; left-to-right and right-to-left mark
      {0x2028, 0x202E},    // line and paragraph separator; embeddings and overrides
      {0x2060, 0x206F},    // word joiner, invisible operators, isolates, deprecated characters
      {0x3164, 0x3164},    // Hangul filler
      {0xFE00, 0xFE0F},    // variation selectors
      {0xFEFF, 0xFEFF},    // byte order mark
      {0xFFA0, 0xFFA0},    // halfwidth Hangul filler
      {0xFFF0, 0xFFFB},    // unassigned; annotation marks
      {0x1BCA0, 0x1BCA3},  // shorthand format controls
      {0x1D173, 0x1D17A},  // musical format controls
      {0xE0000, 0xE0FFF},  // tags and variation selectors
  };
  return std::any_of(std::begin(kUnsafe), std::end(kUnsafe),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    if (c.length != 0 && !is_unsafe(c.value)) {
      out += text.substr(0, length);
    } else if (length == 1) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
    } else {
      out += fmt::format("\\u{{{:04X}}}", static_cast<std::uint32_t>(c.value));
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace halfscope::log
