// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/marks.hpp"

#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

// Control characters. Printable names do not contain them, so a name cannot end its own mark.
constexpr char kBegin = '\x0e', kEnd = '\x0f';

}  // namespace

std::string code(std::string_view name) { return kBegin + log::printable(name) + kEnd; }

std::string listed_code(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> words;
  words.reserve(names.size());
  for (const std::string& name : names) words.push_back(code(name));
  return listed(words, most);
}

std::vector<Piece> pieces(std::string_view sentence) {
  std::vector<Piece> out;
  bool inside = false;
  while (!sentence.empty()) {
    const std::size_t end = sentence.find(inside ? kEnd : kBegin);
    if (end != 0) out.push_back({sentence.substr(0, end), inside});
    if (end == sentence.npos) break;
    sentence.remove_prefix(end + 1);
    inside = !inside;
  }
  return out;
}

std::string plain(std::string_view sentence) {
  std::string out;
  for (const Piece& piece : pieces(sentence)) out += piece.text;
  return out;
}

}  // namespace halfscope::reports::answer
