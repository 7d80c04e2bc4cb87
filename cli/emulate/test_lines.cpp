// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/test_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/emulate/descriptor.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {
namespace {

constexpr std::uint8_t kSpace = 16, kOther = 17;

/// What a byte is: a digit's value, kSpace or kOther. A carriage return is a space.
constexpr std::array<std::uint8_t, 256> kMeaning = [] {
  std::array<std::uint8_t, 256> meaning{};
  meaning.fill(kOther);
  for (const unsigned char c : {' ', '\t', '\r', '\v', '\f'}) meaning[c] = kSpace;
  for (std::uint8_t i = 0; i < 10; ++i) meaning['0' + i] = i;
  for (std::uint8_t i = 10; i < 16; ++i) meaning['A' + i - 10] = meaning['a' + i - 10] = i;
  return meaning;
}();

std::uint8_t meaning(char c) { return kMeaning[static_cast<unsigned char>(c)]; }

char* put_hex(char* at, std::uint64_t value, int digits) {
  for (int i = digits; i-- > 0; value >>= 4) at[i] = "0123456789ABCDEF"[value & 15];
  return at + digits;
}

/// A word of the input, short and safe to print.
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

  /// The answer to one line, written at `at`; nothing for a blank one. Returns its end.
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
  /// Reads as many operands as the operation takes; returns how many there are.
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
    const auto space =
        std::find_if(rest.begin(), rest.end(), [](char c) { return meaning(c) == kSpace; });
    const std::string_view word(rest.data(), static_cast<std::size_t>(space - rest.begin()));
    const WordType& type = operation_.takes[i];
    const bool hex = std::all_of(word.begin(), word.end(), [](char c) { return meaning(c) < 16; });
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
  std::uint64_t number_ = 0;  ///< of the line being answered, from 1
};

}  // namespace

void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out) {
  constexpr std::size_t kLongestAnswer = 3 * 17 + 17 + 3;
  LineReader reader(in, "stdin");
  BlockWriter writer(out, "stdout");
  LineAnswerer answerer(operation, modes, exact);
  try {
    while (reader.read_block()) {
      for (Line line; reader.next(line);) {
        writer.advance(answerer.answer(line, writer.room(kLongestAnswer)));
      }
      writer.flush();
    }
  } catch (const log::BadInput&) {
    writer.flush();  // the answers to the lines before
    throw;
  }
}

}  // namespace halfscope::cli::emulate
