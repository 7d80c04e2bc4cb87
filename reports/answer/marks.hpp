// SPDX-License-Identifier: Apache-2.0
// Names and code inside a sentence. A sentence about data is written once; each renderer shows its
// names in its own way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfscope::reports::answer {

/// A name from a log, or code, as a part of a sentence: printable (log/error.hpp), and marked as
/// code.
std::string code(std::string_view name);
/// "a, b and 3 more", each name as code().
std::string listed_code(const std::vector<std::string>& names, std::size_t most);

/// A sentence, taken apart at its marks.
struct Piece {
  std::string_view text;
  bool code = false;
};
std::vector<Piece> pieces(std::string_view sentence);

/// The sentence without marks: for a terminal, for JSON.
std::string plain(std::string_view sentence);

}  // namespace halfscope::reports::answer
