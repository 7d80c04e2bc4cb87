// SPDX-License-Identifier: Apache-2.0
// Numbers in printed lines, by the words before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::console {

/// The line without ANSI escape sequences, which colour any part of it; `buffer` holds it where it
/// had some.
std::string_view without_colours(std::string_view line, std::string& buffer);

inline bool has(std::string_view line, std::string_view mark) {
  return line.find(mark) != std::string_view::npos;
}

/// The text after a mark, without the blanks and colons before the next word; empty where the mark
/// is missing.
std::optional<std::string_view> after(std::string_view line, std::string_view mark);

/// The end of the number at the beginning of a text; a sentence's full stop, or the text of another
/// message, is not of it. 0 where there is none.
std::size_t end_of_number(std::string_view text);

std::optional<double> number_after(std::string_view line, std::string_view mark);

/// A count of steps, or of what steps have: no larger number is one.
std::optional<std::int64_t> count_after(std::string_view line, std::string_view mark);

/// The number of a field: "name=1", "name: 1", "'name': 1", "\"name\": \"1\"", "name 1".
std::optional<double> field(std::string_view line, std::string_view name);
std::optional<std::int64_t> count_field(std::string_view line, std::string_view name);

/// Largest number that counts as one of steps: two of five digits that were torn into one, as where
/// processes share a log, are more.
inline constexpr std::int64_t kMostSteps = 1'000'000'000;

}  // namespace halfscope::analyzers::readers::console
