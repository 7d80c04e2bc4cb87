// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// How an escape sequence begins: as a byte, or as JSON and Python write that byte.
constexpr std::array<std::string_view, 4> kEscapes = {"\x1b", "\\u001b", "\\x1b", "\\033"};

/// ECMA-48, 5.4: parameters, and a final byte, of which terminals use letters.
std::size_t end_of_control(std::string_view text, std::size_t at) {
  at = text.find_first_not_of("0123456789:;<=>?", at);
  const bool ends =
      at != std::string_view::npos && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  return ends ? at + 1 : 0;
}

/// An operating system command: up to BEL or "ESC \\", as a title or a link.
std::size_t end_of_command(std::string_view text, std::size_t at, std::string_view escape) {
  for (; at < text.size(); ++at) {
    if (text[at] == '\a') return at + 1;
    if (text.substr(at).starts_with("\\u0007")) return at + 6;
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(escape)) {
      return rest.substr(escape.size()).starts_with('\\') ? at + escape.size() + 1 : 0;
    }
  }
  return 0;
}

/// Its length at the beginning of a text, 0 where there is none.
std::size_t escape_at(std::string_view text) {
  for (const std::string_view escape : kEscapes) {
    if (!text.starts_with(escape) || text.size() == escape.size()) continue;
    const std::size_t at = escape.size() + 1;
    switch (text[escape.size()]) {
      case '[': return end_of_control(text, at);
      case ']': return end_of_command(text, at, escape);
      case '(':
      case ')': return at < text.size() ? at + 1 : 0;  // a character set
      case '=':
      case '>':
      case '7':
      case '8':
      case 'M': return escape == "\x1b" ? at : 0;  // single functions
      default: return 0;
    }
  }
  return 0;
}

std::optional<std::int64_t> count_in(std::string_view text) {
  const auto count = common::integer_in(text.substr(0, text.find_first_not_of("0123456789")));
  return count && *count <= kMostSteps ? count : std::nullopt;
}

}  // namespace

std::string_view without_colours(std::string_view line, std::string& buffer) {
  // A search for one character is some ten times as fast as one for either. Each is looked for
  // again once it is passed: a line may be of nothing else.
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

std::optional<std::string_view> after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + mark.size());
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" :")));
  return rest;
}

std::optional<double> number_after(std::string_view line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? lines::printed_number(*rest) : std::nullopt;
}

std::optional<std::int64_t> count_after(std::string_view line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? count_in(*rest) : std::nullopt;
}

}  // namespace halfscope::analyzers::readers::console
