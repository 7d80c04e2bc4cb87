// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/dot_lines.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <vector>

#include "cli/emulate/descriptor.hpp"
#include "cli/emulate/hex.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {
namespace {

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

void answer_dots(const DotProduct& product, int in, int out) {
  constexpr std::size_t kLongestAnswer = 9;
  DotAnswerer answerer(product);
  answer_each(answerer, kLongestAnswer, in, out);
}

}  // namespace halfscope::cli::emulate
