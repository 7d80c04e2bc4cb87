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
#include "reports/answer/explain.hpp"

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

std::size_t digits_of(int width) { return static_cast<std::size_t>(width + 3) / 4; }

std::string_view name_of(Format f) {
  for (const NamedFormat& row : kFormats) {
    if (row.format == f) return row.name;
  }
  return "?";
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// A kind of number on a line: its bits, and its name in messages.
struct Encoding {
  int width;
  std::string_view name;
};

Encoding encoding(Format f) { return {f.width, name_of(f)}; }
Encoding encoding(tensor_core::Scale scale) {
  return {8, scale == tensor_core::Scale::e8m0 ? "e8m0" : "e4m3"};
}

class DotAnswerer {
 public:
  explicit DotAnswerer(const DotProduct& product)
      : product_(product), sums_(encoding(tensor_core::format_of(product.accumulator))) {}

  /// Writes the answer to one line to `at`, or nothing for a blank line. Returns its end.
  char* answer(const Line& line, char* at) {
    number_ = number_.value_or(0) + 1;
    if (line.cut) too_long();
    if (!read_dot(line.text)) return at;
    const std::uint32_t d = product_.unit.block == 0 ? plain() : scaled();
    at = put_hex(at, d, static_cast<int>(digits_of(sums_.width)));
    *at++ = '\n';
    return at;
  }

  std::vector<reports::answer::Section> explain(std::string_view text) {
    if (!read_dot(text)) too_few(0, product_.unit.block == 0 ? 3 : 5);
    return reports::answer::sum_sections(product_.unit, product_.accumulator, a(), b(), count(),
                                         c_);
  }

 private:
  /// Reads the operands. Returns false for a blank text.
  bool read_dot(std::string_view rest) {
    std::array<std::string_view, 5> words;  // a, b, c, the scales of a and of b
    const std::size_t wanted = product_.unit.block == 0 ? 3 : 5;
    for (std::size_t i = 0; i < wanted; ++i) {
      words[i] = next_word(rest);
      if (words[i].empty() && i != 0) too_few(i, wanted);
      if (words[i].empty()) return false;
    }
    read(words[0], "value", "a", encoding(product_.a), a_);
    read(words[1], "value", "b", encoding(product_.b), b_);
    if (a_.size() != b_.size()) different_lengths();
    const std::optional<std::uint32_t> c = number(sums_, words[2]);
    if (!c) bad("c", words[2], sums_);
    c_ = *c;
    if (wanted == 5) read_scales(words[3], "a", a_scales_);
    if (wanted == 5) read_scales(words[4], "b", b_scales_);
    return true;
  }

  static std::string_view next_word(std::string_view& rest) {
    while (!rest.empty() && meaning(rest.front()) == kSpace) rest.remove_prefix(1);
    const std::string_view word = first_word(rest);
    rest.remove_prefix(word.size());
    return word;
  }

  int count() const { return static_cast<int>(a_.size()); }
  tensor_core::ScaledOperand a() const { return {product_.a, a_.data(), a_scales_.data()}; }
  tensor_core::ScaledOperand b() const { return {product_.b, b_.data(), b_scales_.data()}; }
  std::uint32_t plain() const {
    return tensor_core::chain_of(product_.a, product_.b)(product_.unit.unit, product_.accumulator,
                                                         a_.data(), b_.data(), count(), c_);
  }
  std::uint32_t scaled() const { return scaled_chain(product_.unit, a(), b(), count(), c_); }

  void read_scales(std::string_view word, std::string_view of, std::vector<std::uint8_t>& out) {
    read(word, "scale", of, encoding(product_.unit.scale), out);
    const auto block = static_cast<std::size_t>(product_.unit.block);
    const std::size_t wanted = (a_.size() + block - 1) / block;
    if (out.size() == wanted) return;
    refuse(fmt::format("{} has {} and {}; expected {}, one for every {} values", of,
                       plural(a_.size(), "value"), plural(out.size(), "scale"), wanted, block));
  }

  static std::uint64_t largest(const Encoding& type) {
    return (std::uint64_t{1} << type.width) - 1;
  }

  static std::optional<std::uint32_t> number(const Encoding& type, std::string_view word) {
    if (word.size() != digits_of(type.width) || !all_digits(word)) return {};
    std::uint32_t value = 0;
    for (const char c : word) value = value << 4 | meaning(c);
    if (value > largest(type)) return {};
    return value;
  }

  /// Parses the comma-separated values of a word.
  template <class T>
  void read(std::string_view word, std::string_view what, std::string_view of, const Encoding& type,
            std::vector<T>& out) const {
    out.clear();
    for (std::size_t first = 0; first <= word.size();) {
      const std::size_t end = std::min(word.find(',', first), word.size());
      const std::string_view one = word.substr(first, end - first);
      const std::optional<std::uint32_t> value = number(type, one);
      if (!value) bad(fmt::format("{} {} of {}", what, out.size() + 1, of), one, type);
      out.push_back(static_cast<T>(*value));
      first = end + 1;
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw log::BadInput(number_ ? fmt::format("stdin: line {}: {}", *number_, what)
                                : "mma: " + what);
  }
  [[noreturn]] void bad(std::string_view place, std::string_view word, const Encoding& type) const {
    const std::size_t digits = digits_of(type.width);
    const bool too_large = word.size() == digits && all_digits(word);
    refuse(fmt::format("{} is {}; ", place, shown(word)) +
           (too_large
                ? fmt::format("{} has {} bits, {:X} at most", type.name, type.width, largest(type))
                : fmt::format("expected {} ({}), without 0x", plural(digits, "hex digit"),
                              type.name)));
  }
  [[noreturn]] void too_few(std::size_t found, std::size_t wanted) const {
    refuse(fmt::format("{}; expected {}: the values of a, separated by commas, those of b, {}",
                       plural(found, "word"), wanted,
                       wanted == 3 ? "and c" : "c, the scales of a, and those of b"));
  }
  [[noreturn]] void different_lengths() const {
    refuse(fmt::format("a has {} and b has {}; give both as many", plural(a_.size(), "value"),
                       b_.size()));
  }
  [[noreturn]] void too_long() const {
    refuse(
        fmt::format("longer than {} bytes; cut the dot product at a multiple of {} values, and "
                    "give the result of each line as c of the next",
                    LineReader::kLongestLine, product_.unit.unit.length));
  }

  DotProduct product_;
  Encoding sums_;
  std::vector<std::uint16_t> a_, b_;
  std::vector<std::uint8_t> a_scales_, b_scales_;
  std::uint32_t c_ = 0;
  std::optional<std::uint64_t> number_;  ///< the current line, from 1; empty: no line is read
};

}  // namespace

void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out) {
  constexpr std::size_t kLongestAnswer = 3 * 17 + 17 + 3;
  LineAnswerer answerer(operation, modes, exact);
  answer_each(answerer, kLongestAnswer, in, out);
}

std::vector<reports::answer::Section> explain_dot(const DotProduct& product,
                                                  std::string_view text) {
  return DotAnswerer(product).explain(text);
}

void answer_dots(const DotProduct& product, int in, int out) {
  constexpr std::size_t kLongestAnswer = 9;
  DotAnswerer answerer(product);
  answer_each(answerer, kLongestAnswer, in, out);
}

}  // namespace halfscope::cli::emulate
