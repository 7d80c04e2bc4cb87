// SPDX-License-Identifier: Apache-2.0
// The few Python literals an NPY header is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::analyzers::readers::tensors {

/// Reads literals off the front of a text. `place` begins messages. Throws log::BadInput at the
/// first byte that does not fit.
class PythonLiteral {
 public:
  PythonLiteral(std::string_view text, std::string place);

  /// Passes blanks; whether `c` comes next.
  bool next_is(char c);
  /// The same, and passes it.
  bool accept(char c);
  void expect(char c);
  /// A string in either kind of quotes. Escapes are refused: numpy writes none in what is read
  /// here.
  std::string string();
  bool boolean();
  /// A tuple of whole numbers: (), (3,), (3, 4); Python 2's 3L too.
  std::vector<std::uint64_t> tuple();
  /// The text of a bracketed list, its inside unread except for strings and brackets.
  std::string_view list();
  /// Refuses anything but blanks.
  void end();

  [[noreturn]] void refuse(std::string_view wanted) const;

 private:
  void skip_blanks();
  std::uint64_t number();

  std::string_view text_;
  std::size_t at_ = 0;
  std::string place_;
};

}  // namespace halfscope::analyzers::readers::tensors
