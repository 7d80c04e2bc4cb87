// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// Beginnings of an escape sequence: the byte itself, or as JSON and Python write it.
constexpr std::array<std::string_view, 4> kEscapes = {"\x1b", "\\u001b", "\\x1b", "\\033"};

/// Returns the length of the escape sequence at the beginning of a text; 0 if there is none.
/// ECMA-48, 5.4: "[", parameters, and a letter; "]" and a command up to BEL or "ESC \\", such as a
/// title or a link; "(" or ")" and a character set.
std::size_t escape_at(std::string_view text) {
  for (const std::string_view escape : kEscapes) {
    if (!text.starts_with(escape) || text.size() < escape.size() + 2) continue;
    std::size_t at = escape.size() + 1;
    switch (text[at - 1]) {
      case '[':
        at = std::min(text.find_first_not_of("0123456789:;<=>?", at), text.size());
        return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) ? at + 1 : 0;
      case ']': {
        const std::size_t end = std::min(text.find(escape, at), text.size());
        const std::size_t bell = text.substr(0, end).find('\a', at);
        if (bell != std::string_view::npos) return bell + 1;
        return text.substr(end).starts_with(std::string(escape) + '\\') ? end + at : 0;
      }
      case '(':
      case ')': return at + 1;
      default: return 0;
    }
  }
  return 0;
}

}  // namespace

std::string_view without_colours(std::string_view line, std::string& buffer) {
  // Two searches for one character are some ten times as fast as one search for either. A search is
  // repeated only after its result is passed: a line may consist of one of the characters.
  std::size_t escape = std::min(line.find('\x1b'), line.size());
  std::size_t slash = std::min(line.find('\\'), line.size());
  const auto next_from = [&](std::size_t from) {
    if (escape < from) escape = std::min(line.find('\x1b', from), line.size());
    if (slash < from) slash = std::min(line.find('\\', from), line.size());
    return std::min(escape, slash);
  };
  std::size_t at = next_from(0);
  if (at == line.size()) return line;
  buffer.assign(line.substr(0, at));
  while (at < line.size()) {
    const std::size_t length = escape_at(line.substr(at));
    const std::size_t next = next_from(at + std::max<std::size_t>(1, length));
    buffer.append(line.substr(at + length, next - at - length));
    at = next;
  }
  return buffer;
}

std::optional<std::int64_t> count_in(std::string_view text) {
  const auto count = common::integer_in(text.substr(0, text.find_first_not_of("0123456789")));
  return count && *count <= kMostSteps ? count : std::nullopt;
}

}  // namespace halfscope::analyzers::readers::console
