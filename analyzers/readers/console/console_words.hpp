// SPDX-License-Identifier: Apache-2.0
// Numbers in printed lines, by the words before them.
#pragma once

#include <algorithm>
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
  std::size_t find(std::string_view mark, std::size_t from = 0) const {
    for (std::size_t i = 1; i < mark.size(); ++i) {
      if (!pairs_[pair_of(mark[i - 1], mark[i])]) return npos;
    }
    return std::string_view::find(mark, from);
  }

 private:
  /// Five bits of each: letters of either case are alike.
  static std::size_t pair_of(char a, char b) {
    return (static_cast<std::size_t>(a) & 31) << 5 | (static_cast<std::size_t>(b) & 31);
  }
  std::array<bool, 1024> pairs_{};
};

// `Text` is a Line, or a std::string_view.

template <typename Text>
bool has(const Text& line, std::string_view mark) {
  return line.find(mark) != std::string_view::npos;
}

/// The text after a mark, without the blanks and colons before the next word; empty where the mark
/// is missing.
template <typename Text>
std::optional<std::string_view> after(const Text& line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + mark.size());
  return rest.substr(std::min(rest.size(), rest.find_first_not_of(" :")));
}

template <typename Text>
std::optional<double> number_after(const Text& line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? lines::printed_number(*rest) : std::nullopt;
}

/// The figures that a text begins with: a count of steps, or of what steps have, of which no larger
/// number is one.
std::optional<std::int64_t> count_in(std::string_view text);

template <typename Text>
std::optional<std::int64_t> count_after(const Text& line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? count_in(*rest) : std::nullopt;
}

}  // namespace halfscope::analyzers::readers::console
