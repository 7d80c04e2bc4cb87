// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "catch.hpp"
#include "halfscope/log/error.hpp"

namespace test_printable {

using halfscope::log::printable;

TEST_CASE("text that is safe on one line stays as it is", "[log][printable]") {
  const char* const text =
      GENERATE("", "conv1.weight", "<script>alert(1)</script>", "a\\b 'c' \"d\"", "température",
               "слой/вес", "層.重み", "\U0001F642 emoji",
               "\u00A0");  // the first character above the C1 controls
  CHECK(printable(text) == text);
}

TEST_CASE("text that is not safe is shown as escapes", "[log][printable][table]") {
  struct Row {
    const char* what;
    std::string text, shown;
  };
  using namespace std::string_literals;
  const Row row = GENERATE(values<Row>({
      {"a line end would begin a second line", "a\nb\r", "a\\x0Ab\\x0D"},
      {"a tab moves the cursor", "a\tb", "a\\x09b"},
      {"a NUL ends C strings", "a\0b"s, "a\\x00b"},
      {"ESC drives the terminal", "\x1b[2J", "\\x1B[2J"},
      {"DEL", "\x7f", "\\x7F"},
      {"U+0080, the first C1 control", "\u0080", "\\u{0080}"},
      {"U+009B is ESC [ in one character", "\u009b2J", "\\u{009B}2J"},
      {"U+009F, the last C1 control", "\u009f", "\\u{009F}"},
      {"a bare 0x9B byte is not UTF-8", "\x9b", "\\x9B"},
      {"line separator", "\u2028", "\\u{2028}"},
      {"right-to-left override", "grad\u202Etxt", "grad\\u{202E}txt"},
      {"right-to-left mark", "\u200F", "\\u{200F}"},
      {"isolate", "\u2066x\u2069", "\\u{2066}x\\u{2069}"},
      {"Arabic letter mark", "\u061C", "\\u{061C}"},
      {"soft hyphen", "a\u00ADb", "a\\u{00AD}b"},
      {"zero-width space", "a\u200Bb", "a\\u{200B}b"},
      {"zero-width joiner", "a\u200Db", "a\\u{200D}b"},
      {"word joiner", "a\u2060b", "a\\u{2060}b"},
      {"combining grapheme joiner", "a\u034Fb", "a\\u{034F}b"},
      {"Hangul filler", "a\u3164b", "a\\u{3164}b"},
      {"Mongolian vowel separator", "a\u180Eb", "a\\u{180E}b"},
      {"variation selector", "a\uFE0Fb", "a\\u{FE0F}b"},
      {"annotation mark", "a\uFFF9b", "a\\u{FFF9}b"},
      {"musical format control", "a\U0001D173b", "a\\u{1D173}b"},
      {"byte order mark", "\uFEFF", "\\u{FEFF}"},
      {"a tag above the basic plane", "\U000E0041", "\\u{E0041}"},
      {"a sequence cut short", "\xE2\x82", "\\xE2\\x82"},
      {"a lead byte before ASCII", "\xC3(", "\\xC3("},
      {"an overlong slash", "\xC0\xAF", "\\xC0\\xAF"},
      {"an overlong three-byte NUL", "\xE0\x80\x80", "\\xE0\\x80\\x80"},
      {"a surrogate", "\xED\xA0\x80", "\\xED\\xA0\\x80"},
      {"above U+10FFFF", "\xF4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"},
      {"0xFF never begins a character", "\xFF", "\\xFF"},
  }));
  CAPTURE(row.what);
  CHECK(printable(row.text) == row.shown);
  CHECK(printable(printable(row.text)) == printable(row.text));
}

}  // namespace test_printable
