// SPDX-License-Identifier: Apache-2.0
// The pattern of --lines, which names the values in lines that Halfscope cannot read without it.
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

/// Returns true if a value fits a meaning: counts are whole; only an overflow may be True or False.
bool suits(const Pair& pair, Meaning meaning);

/// A value of a line, and its meaning according to a pattern.
struct NamedValue {
  Meaning meaning = Meaning::none;
  Pair pair;  ///< its name is empty
};

/// A pattern such as "iter {step}: loss {loss}, {}scale {loss_scale}": text, names in braces for
/// values, and {} for any text. "{{" and "}}" match braces. Threads may share an object.
class Pattern {
 public:
  /// Throws frames::BadOption if `text` is not a valid pattern.
  explicit Pattern(std::string text);

  const std::string& text() const { return text_; }
  frames::Message option() const;  ///< --lines with the text, for messages
  /// Returns the named values of a line, in order; empty if the line does not match. The line has
  /// no ANSI escape sequences. The pattern may match any part of it. A run of blanks matches a run
  /// of any length, and blanks before a value are skipped.
  std::vector<NamedValue> match(std::string_view line) const;

 private:
  struct Piece {
    enum class Is : std::uint8_t { text, value, any } is = Is::text;
    std::string text = {};  ///< text to match, with one blank for each run of blanks
    Meaning meaning = Meaning::none;
  };
  [[noreturn]] void refuse(const std::string& why) const;
  std::size_t add_name(std::size_t open);

  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace halfscope::analyzers::readers::lines
