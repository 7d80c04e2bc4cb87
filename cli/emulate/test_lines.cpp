// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/test_lines.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/emulate/descriptor.hpp"
#include "cli/emulate/hex.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {
namespace {

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

}  // namespace

void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out) {
  constexpr std::size_t kLongestAnswer = 3 * 17 + 17 + 3;
  LineAnswerer answerer(operation, modes, exact);
  answer_each(answerer, kLongestAnswer, in, out);
}

}  // namespace halfscope::cli::emulate
