// SPDX-License-Identifier: Apache-2.0
// half and the other number types in {fmt}, with the format specifications of double.
//
//     fmt::format("{}", 0.1_h)        0.1         the shortest decimal that reads back
//     fmt::format("{:>+8}", 0.1_h)    "    +0.1"  the same; fill, alignment, sign, #, 0, width, L
//     fmt::format("{:.6f}", 0.1_h)    0.099976    with a precision or a type (aAeEfFgG): the value
//
// "{}" selects fixed or scientific notation by {fmt}'s rule for double.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "halfscope/number/half.hpp"
#include "halfscope/number/text.hpp"

namespace halfscope::detail {

/// Returns true if a specification has a precision or a type. [begin, end) starts with it and ends
/// with the format string: [[fill]align][sign][#][0][width][.precision][L][type]}
constexpr bool has_precision_or_type(const char* begin, const char* end) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
  const char* after_fill = begin == end ? end : begin + 1;
  while (after_fill != end && (static_cast<unsigned char>(*after_fill) & 0xC0) == 0x80) {
    ++after_fill;  // fill is one code point of UTF-8
  }
  if (after_fill != end && is_align(*after_fill)) begin = after_fill + 1;
  int depth = 0;  // width and precision may be the names of arguments: {:{width}}
  for (; begin != end && (depth > 0 || *begin != '}'); ++begin) {
    depth += *begin == '{' ? 1 : *begin == '}' ? -1 : 0;
    const bool letter = (*begin >= 'a' && *begin <= 'z') || (*begin >= 'A' && *begin <= 'Z');
    if (depth == 0 && (*begin == '.' || (letter && *begin != 'L'))) return true;
  }
  return false;
}

/// Returns the double whose shortest decimal equals the shortest decimal of `bits` in format f.
inline double shortest_as_double(Format f, std::uint64_t bits) {
  const double exact = to_double(f, bits);
  if (!std::isfinite(exact)) return exact;
  const std::string text = to_text(f, bits);
  double shortest = exact;
  std::from_chars(text.data(), text.data() + text.size(), shortest);
  return shortest;
}

}  // namespace halfscope::detail

template <halfscope::Format F>
struct fmt::formatter<halfscope::Float<F>> : fmt::formatter<double> {
  constexpr auto parse(format_parse_context& context) {
    shortest_ = !halfscope::detail::has_precision_or_type(context.begin(), context.end());
    return formatter<double>::parse(context);
  }

  template <typename Context>
  auto format(halfscope::Float<F> x, Context& context) const {
    using halfscope::detail::shortest_as_double;
    return formatter<double>::format(
        shortest_ ? shortest_as_double(F, x.bits()) : static_cast<double>(x), context);
  }

 private:
  bool shortest_ = true;
};
