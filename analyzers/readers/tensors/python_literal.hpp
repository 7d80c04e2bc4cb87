// SPDX-License-Identifier: Apache-2.0
// Parses the few kinds of Python literals that an NPY header contains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::analyzers::readers::tensors {

/// Parses literals from the front of a text, one per call. `place` begins error messages. All
/// functions throw log::BadInput at the first byte that does not fit.
class PythonLiteral {
 public:
  PythonLiteral(std::string_view text, std::string place);

  /// Skips blanks. Returns true if `c` is next.
  bool next_is(char c);
  /// Skips blanks, and `c` if it is next. Returns true if it was.
  bool accept(char c);
  /// Skips blanks and `c`, which must be next.
  void expect(char c);
  /// A string in single or double quotes. Escapes are refused, because numpy writes none here.
  std::string string();
  bool boolean();
  /// A tuple of non-negative integers: (), (3,), (3, 4); also Python 2's 3L.
  std::vector<std::uint64_t> tuple();
  /// The text of a list in square brackets. Only strings and brackets inside it are parsed.
  std::string_view list();
  /// Throws unless only blanks follow.
  void end();

  /// Throws log::BadInput: `wanted` was expected at the current position.
  [[noreturn]] void refuse(std::string_view wanted) const;

 private:
  void skip_blanks();
  std::uint64_t number();

  std::string_view text_;
  std::size_t at_ = 0;
  std::string place_;
};

}  // namespace halfscope::analyzers::readers::tensors
