// SPDX-License-Identifier: Apache-2.0
// Marks around names and code in a sentence. Each renderer shows the marked parts in its own way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfscope::reports::answer {

/// Returns a name from a log, or code, made printable (log/error.hpp) and with marks around it.
std::string code(std::string_view name);
/// Returns "a, b and 3 more", each name as by code().
std::string listed_code(const std::vector<std::string>& names, std::size_t most);

/// A part of a sentence.
struct Piece {
  std::string_view text;
  bool code = false;
};
std::vector<Piece> pieces(std::string_view sentence);

/// Returns the sentence without marks, as a terminal and JSON show it.
std::string plain(std::string_view sentence);

}  // namespace halfscope::reports::answer
