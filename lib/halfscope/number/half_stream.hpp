// SPDX-License-Identifier: Apache-2.0
// Streams and text for half and the other number types.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "halfscope/number/half.hpp"
#include "halfscope/number/text.hpp"

namespace halfscope {

/// Returns the shortest decimal that reads back, see text.hpp.
template <Format F>
std::string to_text(Float<F> x) {
  return to_text(F, x.bits());
}

/// from_text<half>("0.1"). Empty if the text is not a number, see from_text.hpp.
template <typename T>
constexpr std::optional<T> from_text(std::string_view text) {
  const std::optional<Rounded> number = from_text(T::kFormat, text);
  if (!number) return std::nullopt;
  return T::from_bits(static_cast<typename T::Bits>(number->bits));
}

/// Writes the shortest decimal that reads back and ignores the stream's precision. After
/// std::fixed, std::scientific or std::hexfloat writes the number as a double.
template <Format F>
std::ostream& operator<<(std::ostream& out, Float<F> x) {
  if ((out.flags() & std::ios_base::floatfield) != 0) return out << static_cast<double>(x);
  return out << to_text(x);
}

}  // namespace halfscope
