// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/pattern.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace halfscope::analyzers::readers::lines {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_of_word(char c) { return is_alphanumeric(c) || c == '_' || c == '.'; }

std::size_t skip_blanks(std::string_view line, std::size_t at) {
  return std::min(line.find_first_not_of(" \t", at), line.size());
}

/// Returns the end of a pattern's text that begins at `at` in a line; kNowhere if it is not there.
std::size_t end_of_text(std::string_view line, std::size_t at, std::string_view text) {
  for (const char c : text) {
    const std::size_t end = c == ' ' ? skip_blanks(line, at) : at;
    if (c == ' ' ? end == at : at == line.size() || line[at] != c) return kNowhere;
    at = c == ' ' ? end : at + 1;
  }
  return at;
}

/// Returns the value at `at`, after blanks, that ends before `text`, the pattern's next text.
/// "1,024" is two values for "{step},{loss}", but one value for "{step}, {loss}". Empty if there is
/// no value, or if letters follow it, as in "64K", that `text` does not begin with.
std::optional<Pair> value_before(std::string_view text, std::string_view line, std::size_t at) {
  at = skip_blanks(line, at);
  constexpr std::size_t kLongestValue = 64;
  const std::string_view value = line.substr(0, at + kLongestValue);
  std::size_t comma = text.starts_with(',') ? value.find(',', at) : kNowhere;
  while (comma != kNowhere && end_of_text(line, comma, text) == kNowhere) {
    comma = value.find(',', comma + 1);
  }
  Pair pair;
  if (at >= line.size() || !set_value(line.substr(0, comma), at, pair)) return std::nullopt;
  const std::string_view rest = line.substr(at + pair.text.size());
  const bool ends =
      rest.empty() || !is_alphanumeric(rest.front()) || text.starts_with(rest.front());
  return ends ? std::optional(pair) : std::nullopt;
}

}  // namespace

bool suits(const Pair& pair, Meaning meaning) {
  switch (meaning) {
    case Meaning::step:
    case Meaning::global_step:
    case Meaning::updates:
    case Meaning::skipped:
    case Meaning::skipped_interval:
    case Meaning::nan_iterations: return pair.count().has_value();
    case Meaning::overflow: return pair.is_truth || pair.value == 0 || pair.value == 1;
    default: return !pair.is_truth;
  }
}

frames::Message Pattern::option() const {
  constexpr std::size_t kShown = 200;
  const std::string shown = log::printable(std::string_view(text_).substr(0, kShown));
  return {frames::Option::lines, "'" + shown + (text_.size() > kShown ? "..'" : "'")};
}

void Pattern::refuse(const std::string& why) const {
  throw frames::BadOption(option() + ": " + why);
}

/// Adds the name whose opening brace is at `open`. Returns the position after its closing brace.
/// Throws frames::BadOption if the name is not valid there.
std::size_t Pattern::add_name(std::size_t open) {
  const std::size_t close = text_.find_first_of("{}", open + 1);
  if (close == kNowhere || text_[close] == '{') {
    refuse("a brace is opened but not closed; write {{ for one in the line");
  }
  std::string name = text_.substr(open + 1, close - open - 1);
  if (name == "_") name.clear();
  const std::string shown = "{" + log::printable(std::string_view(name).substr(0, 40)) + "}";
  if (!pieces_.empty() && pieces_.back().is != Piece::Is::text) {
    refuse("nothing stands between " + shown +
           " and the name before it; put text of the line there");
  }
  const auto* const row = std::ranges::find(kMeaningNames, name);
  if (row == kMeaningNames.end()) {
    refuse(shown + " is unknown; use " + pattern_names() + ", or {} for any text");
  }
  const auto meaning = static_cast<Meaning>(row - kMeaningNames.begin());
  if (!name.empty() && std::ranges::find(pieces_, meaning, &Piece::meaning) != pieces_.end()) {
    refuse(shown + " stands twice; write {} in place of one of them");
  }
  pieces_.push_back({name.empty() ? Piece::Is::any : Piece::Is::value, {}, meaning});
  return close + 1;
}

Pattern::Pattern(std::string text) : text_(std::move(text)) {
  for (std::size_t at = 0; at < text_.size();) {
    const char c = text_[at] == '\t' ? ' ' : text_[at];
    const bool brace = c == '{' || c == '}', twice = brace && text_.find(c, at + 1) == at + 1;
    if (c == '{' && !twice) {
      at = add_name(at);
      continue;
    }
    if (brace && !twice) refuse("a brace is closed but not opened; write }} for one in the line");
    if (pieces_.empty() || pieces_.back().is != Piece::Is::text) pieces_.emplace_back();
    if (c != ' ' || !pieces_.back().text.ends_with(' ')) pieces_.back().text += c;
    at += twice ? 2 : 1;
  }
  if (std::ranges::none_of(pieces_, [](const Piece& p) { return p.meaning > Meaning::epoch; })) {
    refuse("names no value of a step; put names in braces, such as 'step {step} loss {loss}'");
  }
}

std::vector<NamedValue> Pattern::match(std::string_view line) const {
  std::vector<NamedValue> values;
  // The pieces after {} match at the first possible position. If later pieces do not match, another
  // position cannot help, because more of the line follows the first one.
  std::size_t tried = 0, kept = 0, at = 0;
  auto first = pieces_.begin();
  for (auto piece = first; piece != pieces_.end();) {
    if (piece->is == Piece::Is::any) {
      first = ++piece;
      tried = at;
      kept = values.size();
      continue;
    }
    if (piece->is == Piece::Is::text) {
      at = end_of_text(line, at, piece->text);
    } else {
      const bool in_word = piece == pieces_.begin() && at > 0 && is_of_word(line[at - 1]);
      const std::string_view text = piece + 1 == pieces_.end() ? std::string_view() : piece[1].text;
      const auto pair = in_word ? std::nullopt : value_before(text, line, at);
      const bool found = pair && suits(*pair, piece->meaning);
      at = found ? static_cast<std::size_t>(pair->text.data() - line.data()) + pair->text.size()
                 : kNowhere;
      if (found) values.push_back({piece->meaning, *pair});
    }
    ++piece;
    if (at != kNowhere) continue;
    if (++tried >= line.size()) return {};
    at = tried;
    piece = first;
    values.resize(kept);
  }
  return values;
}

}  // namespace halfscope::analyzers::readers::lines
