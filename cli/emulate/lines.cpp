// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/emulate/descriptor.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {

namespace {

constexpr std::uint8_t kSpace = 16, kOther = 17;

/// Maps a byte to a hexadecimal digit's value, kSpace or kOther. A carriage return counts as space.
constexpr std::array<std::uint8_t, 256> kMeaning = [] {
  std::array<std::uint8_t, 256> meaning{};
  meaning.fill(kOther);
  for (const unsigned char c : {' ', '\t', '\r', '\v', '\f'}) meaning[c] = kSpace;
  for (std::uint8_t i = 0; i < 10; ++i) meaning['0' + i] = i;
  for (std::uint8_t i = 10; i < 16; ++i) meaning['A' + i - 10] = meaning['a' + i - 10] = i;
  return meaning;
}();

std::uint8_t meaning(char c) { return kMeaning[static_cast<unsigned char>(c)]; }

bool all_digits(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return meaning(c) < 16; });
}

/// Returns the text before the first space.
std::string_view first_word(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return meaning(c) == kSpace; });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

char* put_hex(char* at, std::uint64_t value, int digits) {
  for (int i = digits; i-- > 0; value >>= 4) at[i] = "0123456789ABCDEF"[value & 15];
  return at + digits;
}

/// Returns a word of the input in quotes, shortened and safe to print.
std::string shown(std::string_view word) {
  constexpr std::size_t kShown = 40;
  const std::string text = log::printable(word.substr(0, kShown));
  return word.size() > kShown ? fmt::format("'{}...' ({} characters)", text, word.size())
                              : fmt::format("'{}'", text);
}

class LineAnswerer {
 public:
  LineAnswerer(const Operation& operation, const Modes& modes, bool exact)
      : operation_(operation), modes_(modes), exact_(exact) {}

  /// Writes the answer to one line to `at`, or nothing for a blank line. Returns its end.
  char* answer(const Line& line, char* at) {
    ++number_;
    Operands operands{};
    const std::size_t found = read(line.text, operands);
    if (found == 0 && !line.cut) return at;
    if (found < operation_.takes.size()) too_few(found, line.cut);
    const Rounded result = operation_(operands, modes_, exact_);
    for (std::size_t i = 0; i < found; ++i) {
      at = put_hex(at, operands[i], operation_.takes[i].hex_digits());
      *at++ = ' ';
    }
    at = put_hex(at, result.bits, operation_.gives.hex_digits());
    *at++ = ' ';
    at = put_hex(at, flag_bits(result.flags), 2);
    *at++ = '\n';
    return at;
  }

 private:
  /// Parses the operands, at most as many as the operation has. Returns their number.
  std::size_t read(std::string_view text, Operands& operands) const {
    const char* at = text.data();
    const char* const end = at + text.size();
    for (std::size_t i = 0; i < operation_.takes.size(); ++i) {
      while (at != end && meaning(*at) == kSpace) ++at;
      if (at == end) return i;
      const char* const start = at;
      std::uint64_t value = 0;
      for (; at != end && meaning(*at) < 16; ++at) value = value << 4 | meaning(*at);
      const WordType& type = operation_.takes[i];
      const bool ends = at == end || meaning(*at) == kSpace;
      if (!ends || at - start > type.hex_digits() || (value >> (type.width - 1)) > 1) {
        bad_operand(i, std::string_view(start, static_cast<std::size_t>(end - start)));
      }
      operands[i] = value;
    }
    return operation_.takes.size();
  }

  [[noreturn]] void bad_operand(std::size_t i, std::string_view rest) const {
    const std::string_view word = first_word(rest);
    const WordType& type = operation_.takes[i];
    const bool hex = all_digits(word);
    const auto digits = static_cast<std::size_t>(type.hex_digits());
    const std::string wanted = hex && word.size() <= digits
                                   ? fmt::format("{} has {} bits, {:X} at most", type.name,
                                                 type.width, (std::uint64_t{1} << type.width) - 1)
                                   : fmt::format("expected {} hex digit{} ({}), without 0x", digits,
                                                 digits == 1 ? "" : "s", type.name);
    throw log::BadInput(
        fmt::format("stdin: line {}: operand {} is {}; {}", number_, i + 1, shown(word), wanted));
  }

  [[noreturn]] void too_few(std::size_t found, bool cut) const {
    std::string wanted;
    for (const WordType& type : operation_.takes) {
      wanted += fmt::format("{}{}", wanted.empty() ? "" : " ", type.name);
    }
    const std::string where =
        cut ? fmt::format(" in its first {} bytes", LineReader::kLongestLine) : "";
    throw log::BadInput(fmt::format("stdin: line {}: {} operand{}{}; {} takes {} ({})", number_,
                                    found, found == 1 ? "" : "s", where, operation_.name,
                                    operation_.takes.size(), wanted));
  }

  const Operation& operation_;
  Modes modes_;
  bool exact_;
  std::uint64_t number_ = 0;  ///< number of the current line, from 1
};

int digits_of(Format f) { return (f.width + 3) / 4; }

std::string_view name_of(Format f) {
  for (const NamedFormat& row : kFormats) {
    if (row.format == f) return row.name;
  }
  return "?";
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class DotAnswerer {
 public:
  explicit DotAnswerer(const DotProduct& product)
      : product_(product),
        sums_(tensor_core::format_of(product.accumulator)),
        chain_(tensor_core::chain_of(product.elements, product.elements)) {}

  /// Writes the answer to one line to `at`, or nothing for a blank line. Returns its end.
  char* answer(const Line& line, char* at) {
    ++number_;
    std::string_view rest = line.text;
    if (line.cut) too_long();
    const std::string_view a = next_word(rest), b = next_word(rest), c = next_word(rest);
    if (a.empty()) return at;
    if (c.empty()) too_few(b.empty() ? 1 : 2);
    read(a, "a", a_);
    read(b, "b", b_);
    if (a_.size() != b_.size()) different_lengths();
    const std::optional<std::uint32_t> start = number(sums_, c);
    if (!start) bad("c", c, sums_);
    const std::uint32_t d = chain_(product_.unit, product_.accumulator, a_.data(), b_.data(),
                                   static_cast<int>(a_.size()), *start);
    at = put_hex(at, d, digits_of(sums_));
    *at++ = '\n';
    return at;
  }

 private:
  static std::string_view next_word(std::string_view& rest) {
    while (!rest.empty() && meaning(rest.front()) == kSpace) rest.remove_prefix(1);
    const std::string_view word = first_word(rest);
    rest.remove_prefix(word.size());
    return word;
  }

  static std::optional<std::uint32_t> number(Format f, std::string_view word) {
    if (word.size() != static_cast<std::size_t>(digits_of(f)) || !all_digits(word)) return {};
    std::uint32_t value = 0;
    for (const char c : word) value = value << 4 | meaning(c);
    return value;
  }

  /// Parses the comma-separated values of a word.
  void read(std::string_view word, std::string_view name, std::vector<std::uint16_t>& out) const {
    out.clear();
    for (std::size_t first = 0; first <= word.size();) {
      const std::size_t end = std::min(word.find(',', first), word.size());
      const std::string_view one = word.substr(first, end - first);
      const std::optional<std::uint32_t> value = number(product_.elements, one);
      if (!value) {
        bad(fmt::format("value {} of {}", out.size() + 1, name), one, product_.elements);
      }
      out.push_back(static_cast<std::uint16_t>(*value));
      first = end + 1;
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw log::BadInput(fmt::format("stdin: line {}: {}", number_, what));
  }
  [[noreturn]] void bad(std::string_view place, std::string_view word, Format f) const {
    refuse(fmt::format("{} is {}; expected {} hex digits ({}), without 0x", place, shown(word),
                       digits_of(f), name_of(f)));
  }
  [[noreturn]] void too_few(std::size_t found) const {
    refuse(fmt::format("{}; expected 3: the values of a, separated by commas, those of b, and c",
                       plural(found, "word")));
  }
  [[noreturn]] void different_lengths() const {
    refuse(fmt::format("a has {} and b has {}; give both as many", plural(a_.size(), "value"),
                       b_.size()));
  }
  [[noreturn]] void too_long() const {
    refuse(
        fmt::format("longer than {} bytes; cut the dot product at a multiple of {} values, and "
                    "give the result of each line as c of the next",
                    LineReader::kLongestLine, product_.unit.length));
  }

  DotProduct product_;
  Format sums_;
  tensor_core::Chain chain_;
  std::vector<std::uint16_t> a_, b_;
  std::uint64_t number_ = 0;  ///< number of the current line, from 1
};

}  // namespace

void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out) {
  constexpr std::size_t kLongestAnswer = 3 * 17 + 17 + 3;
  LineAnswerer answerer(operation, modes, exact);
  answer_each(answerer, kLongestAnswer, in, out);
}

void answer_dots(const DotProduct& product, int in, int out) {
  constexpr std::size_t kLongestAnswer = 9;
  DotAnswerer answerer(product);
  answer_each(answerer, kLongestAnswer, in, out);
}

}  // namespace halfscope::cli::emulate
