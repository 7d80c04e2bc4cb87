// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/pairs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::lines {
namespace {

constexpr std::size_t kLongestName = 64;

/// A set of characters. A lookup is one load, since the innermost loops of all readers use it.
class Set {
 public:
  constexpr explicit Set(std::string_view characters) {
    for (const char c : characters) has_[static_cast<unsigned char>(c)] = true;
  }
  constexpr bool operator()(char c) const { return has_[static_cast<unsigned char>(c)]; }

 private:
  std::array<bool, 256> has_{};
};
constexpr Set is_figure("0123456789");
constexpr Set is_letter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
constexpr Set is_name("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
/// Characters of a word within a name.
constexpr Set is_word("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-%");
constexpr Set is_sign("+-.");
constexpr Set begins_number("0123456789+-.nNiI");
constexpr Set begins_truth("TtFf");
constexpr Set is_assignment(":=");
constexpr Set is_quote("\"'");
constexpr Set is_blank(" ");
constexpr Set is_quote_or_blank(" \t\"'");
constexpr Set opens_value(" \t\"'([{");

/// Returns the value of "1.#QNAN", "-1.#IND00" or "1.#INF" (Microsoft's runtime until 2015).
std::optional<double> windows_nonfinite(std::string_view text) {
  if (text.size() < 5 || (text[2] != '#' && text[3] != '#')) return std::nullopt;
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  if (!text.starts_with("1.#")) return std::nullopt;
  text.remove_prefix(3);
  const double inf = std::numeric_limits<double>::infinity();
  if (text.starts_with("INF")) return minus ? -inf : inf;
  const bool nan = text.starts_with("QNAN") || text.starts_with("SNAN") || text.starts_with("IND");
  return nan ? std::optional(std::numeric_limits<double>::quiet_NaN()) : std::nullopt;
}

/// Returns the end of the digits that begin at `at`.
std::size_t end_of_figures(std::string_view line, std::size_t at) {
  while (at < line.size() && is_figure(line[at])) ++at;
  return at;
}

/// Returns the end of an integer with thousands separators, such as 94,495,934, whose digits before
/// the first comma are from `at` to `end`; `end` if it has none.
std::size_t end_of_thousands(std::string_view line, std::size_t at, std::size_t end) {
  if (line[at] == '0' || end - at > 3 || end_of_figures(line, at) != end) return end;
  while (end < line.size() && line[end] == ',' && end_of_figures(line, end + 1) == end + 4)
    end += 4;
  return end;
}

/// Reads the number at the beginning of a text. Returns its length; 0 if there is none.
std::size_t read_number(std::string_view text, double& number) {
  const bool windows = text.size() > 4 && (text[2] == '#' || text[3] == '#');
  if (const auto nonfinite = windows ? windows_nonfinite(text) : std::nullopt) {
    number = *nonfinite;
    return std::min(text.find_first_not_of("+-.#0123456789QSNAIDF"), text.size());
  }
  const bool sign = text.starts_with('+');  // from_chars rejects it
  const auto [end, error] =
      std::from_chars(text.data() + (sign ? 1 : 0), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  auto length = static_cast<std::size_t>(end - text.data());
  // PaddleOCR prints "nanxxx".
  while (std::isnan(number) && length < text.size() && text[length] == 'x') ++length;
  const bool word = length < text.size() && text[length] >= 'a' && text[length] <= 'z';
  return word && !std::isfinite(number) ? 0 : length;  // "info" is not a number
}

struct Value {
  std::size_t end = 0;  ///< 0: no value begins here
  double number = 0;
  bool is_truth = false;
};

/// Returns true if "nan" or "inf" at `at` is a value, and no part of a word or of a name, as in
/// "number of nan iterations: 3".
bool stands_alone(std::string_view line, std::size_t at, std::size_t length) {
  const std::string_view rest = line.substr(at + length);
  if (!rest.empty() && is_name(rest.front())) return false;
  const bool goes_on = rest.size() > 1 && rest.front() == ' ' && is_letter(rest[1]);
  return !goes_on || !line.substr(0, at).ends_with(" of ");
}

/// Returns the value that begins at `at`, which is below the line's length.
Value read_value(std::string_view line, std::size_t at) {
  const std::string_view rest = line.substr(at);
  if (begins_truth(rest.front())) {
    const std::string_view word = rest.substr(1);
    const std::size_t end = word.starts_with("rue") ? 4 : word.starts_with("alse") ? 5 : 0;
    if (end == 0 || (rest.size() > end && is_name(rest[end]))) return {};
    return {at + end, end == 4 ? 1.0 : 0.0, true};
  }
  if (!begins_number(rest.front())) return {};
  // A fast check for words: only "nan" and "inf" are numbers.
  constexpr Set is_second("aAnN");
  if (is_letter(rest.front()) && (rest.size() < 3 || !is_second(rest[1]))) return {};
  double number = 0;
  const std::size_t length = read_number(rest, number);
  if (length == 0) return {};
  if (is_letter(rest.front()) && !stands_alone(line, at, length)) return {};
  return {end_of_thousands(line, at, at + length), number, false};
}

/// Returns the end of the name of the value at `end`: goes back over quotes, blanks, brackets, ':'
/// or '=', and a unit, but not below `floor`.
std::size_t end_of_name(std::string_view line, std::size_t floor, std::size_t end) {
  const auto back_over = [&](const Set& set) {
    while (end > floor && set(line[end - 1])) --end;
  };
  back_over(opens_value);
  if (end < line.size() && line[end] == '(') {  // "loss: tensor(nan, device=.."
    for (const std::string_view made : {"tensor", "array"}) {
      if (line.substr(floor, end - floor).ends_with(made)) end -= made.size();
    }
    back_over(opens_value);
  }
  if (end > floor && is_assignment(line[end - 1])) {
    --end;
  } else if (end > floor + 1 && line[end - 1] == ',' && is_quote(line[end - 2])) {
    --end;  // ('loss', 1.2)
  }
  back_over(is_quote_or_blank);
  if (end > floor && line[end - 1] == ')') {  // a unit: "memory(GiB)", "Epoch(train)"
    const std::size_t open = line.substr(floor, end - floor).rfind('(');
    if (open != std::string_view::npos) end = floor + open;
    back_over(is_blank);
  }
  return end;
}

/// Returns the name of the value at `at`: the words before it, back to the end of the previous
/// value at `floor`, a mark, two blanks or " - ". Empty if there is none.
std::string_view name_before(std::string_view line, std::size_t floor, std::size_t at) {
  const std::size_t end = end_of_name(line, floor, at);
  if (end == floor || (is_word(line[end - 1]) && !is_name(line[end - 1]) && line[end - 1] != '.'))
    return {};  // "step / 100"
  std::size_t begin = end;
  while (begin > floor && end - begin < kLongestName) {
    const char c = line[begin - 1];
    if (c == ' ') {
      if (begin < floor + 2 || !is_word(line[begin - 2])) break;
      const bool lone = begin < floor + 3 || line[begin - 3] == ' ';
      if (line[begin - 2] == '-' && lone) break;
    } else if (!is_word(c)) {
      break;
    }
    --begin;
  }
  while (begin < end && line[begin] == ' ') ++begin;
  // "module:function:12" is a line of source code.
  const bool place = begin > floor && line[begin - 1] == ':' && at > 0 && line[at - 1] == ':';
  return place ? std::string_view() : line.substr(begin, end - begin);
}

/// Returns the end of the word that continues at `at`. A word may contain dots: "train.py".
std::size_t end_of_word(std::string_view line, std::size_t at) {
  const auto goes_on = [&](std::size_t i) {
    return is_name(line[i]) || (line[i] == '.' && i + 1 < line.size() && is_name(line[i + 1]));
  };
  while (at < line.size() && goes_on(at)) ++at;
  return at;
}

/// Returns 5000 for "/ 5000" at `at` and moves `at` to its end; empty if there is no total.
std::optional<std::int64_t> take_total(std::string_view line, std::size_t& at) {
  std::size_t next = at;
  while (next < line.size() && line[next] == ' ') ++next;
  if (next == line.size() || line[next] != '/') return std::nullopt;
  ++next;
  while (next < line.size() && line[next] == ' ') ++next;
  const std::size_t end = end_of_figures(line, next);
  const auto total = common::integer_in(line.substr(next, end - next));
  if (total) at = end;
  return total;
}

}  // namespace

std::size_t end_of_number(std::string_view text) {
  double number = 0;
  return read_number(text, number);
}

std::optional<double> printed_number(std::string_view text) {
  const auto found = windows_nonfinite(text);
  return found ? found : common::number_in(text.substr(0, end_of_number(text)));
}

std::optional<std::int64_t> Pair::count() const {
  std::string figures(text.substr(0, text.find_last_not_of('0') + 1).ends_with('.')
                          ? text.substr(0, text.find('.'))  // "10.0"
                          : text);
  std::erase(figures, ',');
  if (is_truth || figures.empty() || !std::ranges::all_of(figures, is_figure)) return std::nullopt;
  const auto found = common::integer_in(figures);
  return found && *found <= kMostSteps ? found : std::nullopt;
}

bool begins_value(std::string_view line, std::size_t at) {
  if (at >= line.size()) return false;
  const char c = line[at];
  if (!is_sign(c)) return begins_number(c) || begins_truth(c);
  return at + 1 < line.size() && is_name(line[at + 1]) && (at == 0 || !is_word(line[at - 1]));
}

bool set_value(std::string_view line, std::size_t at, Pair& pair) {
  const Value value = read_value(line, at);
  if (value.end == 0) return false;
  pair.text = line.substr(at, value.end - at);
  pair.value = value.number;
  pair.is_truth = value.is_truth;
  if (pair.text.find(',') != std::string_view::npos) {
    std::string figures(pair.text);
    std::erase(figures, ',');
    pair.value = common::number_in(figures).value_or(0);
  }
  return true;
}

void find_pairs(std::string_view line, std::vector<Pair>& pairs) {
  pairs.clear();
  std::size_t floor = 0;  // end of the previous value
  for (std::size_t at = 0; at < line.size();) {
    if (!begins_value(line, at)) {
      at = is_name(line[at]) ? end_of_word(line, at + 1) : at + 1;
      continue;
    }
    Pair pair;
    if (!set_value(line, at, pair)) {
      at = end_of_word(line, at + 1);
      continue;
    }
    pair.name = name_before(line, floor, at);
    pair.named = meaning_of(pair.name);
    at += pair.text.size();
    const std::size_t unit = at;
    while (at < line.size() && (is_letter(line[at]) || line[at] == '%')) ++at;
    pair.unit = line.substr(unit, at - unit);
    if (pair.unit.empty()) pair.total = take_total(line, at);
    floor = at;
    pairs.push_back(pair);
  }
}

}  // namespace halfscope::analyzers::readers::lines
