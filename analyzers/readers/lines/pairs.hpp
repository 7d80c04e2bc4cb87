// SPDX-License-Identifier: Apache-2.0
// Pairs of a name and a value in a line that any program printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/names.hpp"

namespace halfscope::analyzers::readers::lines {

/// Largest number that is accepted as a count of steps. If processes that share a log tear two
/// numbers of five digits into one, the result is larger.
inline constexpr std::int64_t kMostSteps = 1'000'000'000;

/// Returns the length of the number at the beginning of a text; 0 if there is none. The number ends
/// before a second point, as in "32.0.", and before text of another message.
std::size_t end_of_number(std::string_view text);
/// Returns the number at the beginning of a text; empty if there is none.
std::optional<double> printed_number(std::string_view text);

/// A value in a line and its name: "name: value", "name=value", "name value", "'name': 'value'",
/// "name[value]" or "('name', value)". Its texts are parts of the line.
struct Pair {
  std::string_view name;  ///< empty if the value has none, such as a running mean in brackets
  std::string_view text;  ///< the value as printed
  std::string_view unit;  ///< letters or "%" directly after the value: "ms", "batch"
  double value = 0;       ///< the number; 1 for True, 0 for False
  bool is_truth = false;  ///< true if the value is True or False
  std::optional<std::int64_t> total = {};  ///< 5000 in "3010/5000"
  Named named = {};                        ///< meaning of the name

  /// Returns 1234 for "1,234" and 10 for "10.0"; empty if the value is no count of steps.
  std::optional<std::int64_t> count() const;
};

/// Returns true if the character at `at` can begin a value; false if `at` is the line's end.
bool begins_value(std::string_view line, std::size_t at);
/// Sets `text`, `value` and `is_truth` of a pair from the value that begins at `at`, which is below
/// the line's length. Returns false and changes nothing if no value begins there.
bool set_value(std::string_view line, std::size_t at, Pair& pair);

/// Replaces `pairs` by all pairs of a line, in order. The line has no ANSI escape sequences.
void find_pairs(std::string_view line, std::vector<Pair>& pairs);
inline std::vector<Pair> pairs_in(std::string_view line) {
  std::vector<Pair> pairs;
  find_pairs(line, pairs);
  return pairs;
}

}  // namespace halfscope::analyzers::readers::lines
