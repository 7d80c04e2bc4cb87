// SPDX-License-Identifier: Apache-2.0
// Pairs of a name and a value in a printed line, whatever program printed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/names.hpp"

namespace halfscope::analyzers::readers::lines {

/// Largest number that counts as one of steps: two of five digits that were torn into one, as where
/// processes share a log, are more.
inline constexpr std::int64_t kMostSteps = 1'000'000'000;

/// The end of the number at the beginning of a text; 0 if there is none. A sentence's full stop and
/// the text of another message are no part of the number.
std::size_t end_of_number(std::string_view text);
/// The number that a text begins with.
std::optional<double> printed_number(std::string_view text);

/// "name: value", "name=value", "name value", "'name': 'value'", "name[value]", "('name', value)".
/// Texts are parts of the line.
struct Pair {
  std::string_view name;  ///< empty: the value has none, such as a running mean in brackets
  std::string_view text;  ///< the value as printed
  std::string_view unit;  ///< letters right behind the value: "ms", "batch"
  double value = 0;       ///< 1 and 0 for True and False
  bool is_truth = false;  ///< True or False
  std::optional<std::int64_t> total = {};  ///< of "3010/5000"
  Named named = {};                        ///< what the name means

  /// The value as a count of steps; empty for all other numbers. "1,234" is 1234.
  std::optional<std::int64_t> count() const;
};

/// Returns true if a value can begin at a place of a line; `at` may be the line's end.
bool begins_value(std::string_view line, std::size_t at);
/// Sets `text`, `value` and `is_truth` of a pair by the value that begins at a place of a line.
/// Returns false and sets nothing if none does.
bool set_value(std::string_view line, std::size_t at, Pair& pair);

/// Puts all pairs of a line without colours into `pairs`, in order.
void find_pairs(std::string_view line, std::vector<Pair>& pairs);
inline std::vector<Pair> pairs_in(std::string_view line) {
  std::vector<Pair> pairs;
  find_pairs(line, pairs);
  return pairs;
}

}  // namespace halfscope::analyzers::readers::lines
