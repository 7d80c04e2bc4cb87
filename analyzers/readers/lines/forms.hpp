// SPDX-License-Identifier: Apache-2.0
// Lines that differ only in their numbers, because one statement of a program prints them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::lines {

/// The words of a line, and the positions of its values.
class Form {
 public:
  /// Remembers a line and its pairs. A line of more than 4,096 characters matches no other line.
  void set(std::string_view line, const std::vector<Pair>& pairs);
  /// If a line differs from the remembered line only in finite numbers, sets `pairs` to what
  /// find_pairs() would find and returns true. Otherwise `pairs` is unspecified.
  bool read(std::string_view line, std::vector<Pair>& pairs) const;

 private:
  /// A pair and its position in the remembered line.
  struct Slot {
    Pair pair;              ///< its texts are used only for their lengths
    std::size_t begin = 0;  ///< end of the previous value, where the words before this value begin
    std::size_t words = 0;  ///< length of these words, without blanks at the end
    std::size_t name = 0, value = 0;  ///< beginning of the name and of the value
    bool is_number = false;           ///< finite; any other value must have the same text
  };

  std::string line_;
  std::vector<Slot> slots_;
  std::size_t rest_ = 0;  ///< end of the last value
};

/// Finds the pairs of lines. It is fast for lines with one of the last kMost forms.
class Forms {
 public:
  static constexpr std::size_t kMost = 4;

  /// Reads a line. The functions below return its properties until the next call.
  void read(std::string_view line);
  /// Returns the line's pairs, as find_pairs() finds them. Their texts are parts of the line.
  const std::vector<Pair>& pairs() const { return pairs_; }
  /// Returns the index of the line's form among the remembered forms, below kMost.
  std::size_t place() const { return place_; }
  /// Returns true if the line has a new form, which replaced the remembered form at place().
  bool is_new() const { return is_new_; }

 private:
  std::array<Form, kMost> forms_;
  std::vector<Pair> pairs_;
  std::size_t place_ = 0, next_ = 0;
  bool is_new_ = false;
};

}  // namespace halfscope::analyzers::readers::lines
