// SPDX-License-Identifier: Apache-2.0
// The literals 1.5_h and 1.5_bf16. Include half.hpp instead.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "halfscope/number/from_text.hpp"
#include "halfscope/number/half.hpp"

namespace halfscope {
namespace detail {

/// Parses the literal's characters. A long double parameter, as other literal operators use, would
/// round a literal next to a tie twice.
template <typename T, char... kCharacters>
consteval T literal() {
  std::array<char, sizeof...(kCharacters)> text = {};
  std::size_t size = 0;
  for (const char c : {kCharacters...}) {
    if (c != '\'') text[size++] = c;  // 65'504_h
  }
  const auto number = from_text(T::kFormat, std::string_view(text.data(), size));
  if (!number) throw std::invalid_argument("not a decimal or hexadecimal literal");
  return T::from_bits(static_cast<typename T::Bits>(number->bits));
}

}  // namespace detail

inline namespace literals {

template <char... kCharacters>
consteval half operator""_h() {
  return detail::literal<half, kCharacters...>();
}

template <char... kCharacters>
consteval bfloat16 operator""_bf16() {
  return detail::literal<bfloat16, kCharacters...>();
}

}  // namespace literals
}  // namespace halfscope
