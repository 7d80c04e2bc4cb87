// SPDX-License-Identifier: Apache-2.0
// Finds words in printed lines, and the numbers after them.
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

/// Returns a line without ANSI escape sequences (colours). The result is in `line` or in `buffer`.
std::string_view without_colours(std::string_view line, std::string& buffer);

/// A line in which some sixty words are searched, most of them in vain. The constructor notes all
/// pairs of adjacent characters, so that find() can reject most words without a search.
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
  /// Returns the index of a pair: five bits of each character, so that case does not matter.
  static std::size_t pair_of(char a, char b) {
    return (static_cast<std::size_t>(a) & 31) << 5 | (static_cast<std::size_t>(b) & 31);
  }
  std::array<bool, 1024> pairs_{};
};

// In these templates, `Text` is a Line or a std::string_view.

template <typename Text>
bool has(const Text& line, std::string_view mark) {
  return line.find(mark) != std::string_view::npos;
}

/// Returns the text after `mark`, without leading blanks and colons; empty if `mark` is missing.
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

/// Returns the count that a text begins with, in digits; empty if none, or above kMostSteps.
std::optional<std::int64_t> count_in(std::string_view text);

template <typename Text>
std::optional<std::int64_t> count_after(const Text& line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? count_in(*rest) : std::nullopt;
}

}  // namespace halfscope::analyzers::readers::console
