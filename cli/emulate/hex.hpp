// SPDX-License-Identifier: Apache-2.0
// Parsing and writing of hexadecimal digits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {

inline constexpr std::uint8_t kSpace = 16, kOther = 17;

/// Maps a byte to a hexadecimal digit's value, kSpace or kOther. A carriage return counts as space.
inline constexpr std::array<std::uint8_t, 256> kMeaning = [] {
  std::array<std::uint8_t, 256> meaning{};
  meaning.fill(kOther);
  for (const unsigned char c : {' ', '\t', '\r', '\v', '\f'}) meaning[c] = kSpace;
  for (std::uint8_t i = 0; i < 10; ++i) meaning['0' + i] = i;
  for (std::uint8_t i = 10; i < 16; ++i) meaning['A' + i - 10] = meaning['a' + i - 10] = i;
  return meaning;
}();

inline std::uint8_t meaning(char c) { return kMeaning[static_cast<unsigned char>(c)]; }

inline bool all_digits(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return meaning(c) < 16; });
}

/// Returns the text before the first space.
inline std::string_view first_word(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return meaning(c) == kSpace; });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

inline char* put_hex(char* at, std::uint64_t value, int digits) {
  for (int i = digits; i-- > 0; value >>= 4) at[i] = "0123456789ABCDEF"[value & 15];
  return at + digits;
}

/// Returns a word of the input in quotes, shortened and safe to print.
inline std::string shown(std::string_view word) {
  constexpr std::size_t kShown = 40;
  const std::string text = log::printable(word.substr(0, kShown));
  return word.size() > kShown ? fmt::format("'{}...' ({} characters)", text, word.size())
                              : fmt::format("'{}'", text);
}

}  // namespace halfscope::cli::emulate
