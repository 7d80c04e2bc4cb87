// SPDX-License-Identifier: Apache-2.0
// Numbers in printed lines, by the words before them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::console {

using lines::end_of_number;
using lines::kMostSteps;

/// The line without ANSI escape sequences, which colour any part of it; `buffer` holds it where it
/// had some.
std::string_view without_colours(std::string_view line, std::string& buffer);

/// A line in which some sixty words are looked for, of which it has few. Which characters stand
/// side by side in it is noted once, so that a word with other pairs is not looked for.
class Line : public std::string_view {
 public:
  Line(std::string_view text) : std::string_view(text) {  // NOLINT(google-explicit-constructor)
    for (std::size_t i = 1; i < size(); ++i) pairs_[pair_of((*this)[i - 1], (*this)[i])] = true;
  }
  bool may_have(std::string_view mark) const {
    for (std::size_t i = 1; i < mark.size(); ++i) {
      if (!pairs_[pair_of(mark[i - 1], mark[i])]) return false;
    }
    return true;
  }
  std::size_t find(std::string_view mark, std::size_t from = 0) const {
    return may_have(mark) ? std::string_view::find(mark, from) : npos;
  }

 private:
  /// Five bits of each: letters of either case are alike.
  static std::size_t pair_of(char a, char b) {
    return (static_cast<std::size_t>(a) & 31) << 5 | (static_cast<std::size_t>(b) & 31);
  }
  std::array<bool, 1024> pairs_{};
};

inline bool has(std::string_view line, std::string_view mark) {
  return line.find(mark) != std::string_view::npos;
}
inline bool has(const Line& line, std::string_view mark) { return line.find(mark) != Line::npos; }

/// The text after a mark, without the blanks and colons before the next word; empty where the mark
/// is missing.
std::optional<std::string_view> after(std::string_view line, std::string_view mark);

std::optional<double> number_after(std::string_view line, std::string_view mark);

/// A count of steps, or of what steps have: no larger number is one.
std::optional<std::int64_t> count_after(std::string_view line, std::string_view mark);

// The same of a line that knows what it may have.
inline std::optional<std::string_view> after(const Line& line, std::string_view mark) {
  if (!line.may_have(mark)) return std::nullopt;
  return after(std::string_view(line), mark);
}
inline std::optional<double> number_after(const Line& line, std::string_view mark) {
  return line.may_have(mark) ? number_after(std::string_view(line), mark) : std::nullopt;
}
inline std::optional<std::int64_t> count_after(const Line& line, std::string_view mark) {
  return line.may_have(mark) ? count_after(std::string_view(line), mark) : std::nullopt;
}
}  // namespace halfscope::analyzers::readers::console
