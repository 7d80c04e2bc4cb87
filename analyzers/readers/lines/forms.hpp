// SPDX-License-Identifier: Apache-2.0
// Lines that differ in their numbers alone, as a program prints them again and again.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::lines {

/// The words of a line, and where its numbers stand.
class Form {
 public:
  /// Remembers a line and its pairs. A line above 4,096 characters is not remembered.
  void set(std::string_view line, const std::vector<Pair>& pairs);
  /// If a line has the words of the remembered one and other finite numbers, puts its pairs into
  /// `pairs`, which are those of find_pairs(), and returns true. Otherwise `pairs` is unspecified.
  bool read(std::string_view line, std::vector<Pair>& pairs) const;

 private:
  /// A pair, and where it stands in the remembered line.
  struct Slot {
    Pair pair;              ///< only the lengths of its texts are used
    std::size_t begin = 0;  ///< of the words before the value, behind the value before
    std::size_t words = 0;  ///< their length, without blanks at the end
    std::size_t name = 0, value = 0;
    bool is_number = false;  ///< finite; other values are compared as words
  };

  std::string line_;
  std::vector<Slot> slots_;
  std::size_t rest_ = 0;  ///< where the last value ends
};

/// The last few forms of a text's lines.
class Forms {
 public:
  static constexpr std::size_t kMost = 4;

  /// Reads the next line.
  void read(std::string_view line);
  /// The pairs of that line.
  const std::vector<Pair>& pairs() const { return pairs_; }
  /// Which of the last forms the line has, below kMost.
  std::size_t place() const { return place_; }
  /// Returns true if no line before had that form.
  bool is_new() const { return is_new_; }

 private:
  std::array<Form, kMost> forms_;
  std::vector<Pair> pairs_;
  std::size_t place_ = 0, next_ = 0;
  bool is_new_ = false;
};

}  // namespace halfscope::analyzers::readers::lines
