// SPDX-License-Identifier: Apache-2.0
// The pattern of --lines, which names the values of lines that Halfscope does not read by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/message.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::lines {

/// Returns true if a value fits a meaning: counts are whole numbers, and only an overflow may be
/// True or False.
bool suits(const Pair& pair, Meaning meaning);

/// A value of a line, with the meaning that a pattern gives it.
struct NamedValue {
  Meaning meaning = Meaning::none;
  Pair pair;  ///< without a name
};

/// "iter {step}: loss {loss}, {}scale {loss_scale}": text, names in braces for values, and {} for
/// any text. "{{" and "}}" are braces of the line. Any thread may use one.
class Pattern {
 public:
  /// Throws frames::BadOption if the text is no pattern.
  explicit Pattern(std::string text);

  const std::string& text() const { return text_; }
  frames::Message option() const;  ///< --lines with the text, for messages
  /// The named values of a line without colours, in order; empty if it does not match. It may match
  /// anywhere. A run of blanks matches any other, and blanks before a value are skipped.
  std::vector<NamedValue> match(std::string_view line) const;

 private:
  struct Piece {
    enum class Is : std::uint8_t { text, value, any } is = Is::text;
    std::string text = {};  ///< each run of blanks as one
    Meaning meaning = Meaning::none;
  };
  [[noreturn]] void refuse(const std::string& why) const;
  std::size_t add_name(std::size_t open);

  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace halfscope::analyzers::readers::lines
