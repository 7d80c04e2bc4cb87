// SPDX-License-Identifier: Apache-2.0
// Integers without a limit, as a policy needs them that computes in Python's: made from a double,
// multiplied, rounded to a double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halfscope::policy {

/// Digits of a non-negative integer, base 2^32, the lowest first; empty is not an integer. Doubles,
/// since a policy's state is numbers.
using WholeNumber = std::vector<double>;

inline bool is_whole(double x) { return x == std::floor(x) && std::isfinite(x); }

/// A whole number of at least 0. Every double that is whole, exactly.
inline WholeNumber whole_number_of(double x) {
  WholeNumber digits;
  for (; x >= 1 || digits.empty(); x = std::floor(x * 0x1p-32)) {
    digits.push_back(std::fmod(x, 0x1p32));
  }
  return digits;
}

/// factor: a whole number of at most 2^53.
inline void multiply(WholeNumber& digits, double factor) {
  __extension__ using Wide = unsigned __int128;
  Wide carry = 0;
  const auto keep = [&carry](double& digit) {
    digit = static_cast<double>(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  };
  for (double& digit : digits) {
    carry += Wide{static_cast<std::uint64_t>(digit)} * static_cast<std::uint64_t>(factor);
    keep(digit);
  }
  while (carry != 0) keep(digits.emplace_back());
}

/// Rounded to nearest, ties to even; infinity beyond binary64.
inline double to_double(const WholeNumber& digits) {
  // The highest 64 bits and more, and whether anything lies below: the lowest bit of an odd number.
  std::uint64_t high = 0;
  bool sticky = false;
  int exponent = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    const auto bits = static_cast<std::uint64_t>(*digit);
    const int room = std::min(32, std::countl_zero(high));
    const int dropped = 32 - room;
    high = room == 0 ? high : high << room | bits >> dropped;
    sticky = sticky || (bits & ((std::uint64_t{1} << dropped) - 1)) != 0;
    exponent += dropped;
  }
  if (sticky) high |= 1;
  return std::ldexp(static_cast<double>(high), exponent);
}

}  // namespace halfscope::policy
