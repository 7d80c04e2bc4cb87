// SPDX-License-Identifier: Apache-2.0
// Integers of unlimited size, for a policy that computes in Python's integers: conversion from a
// double, multiplication, rounding to a double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halfscope::policy {

/// Digits of a non-negative integer in base 2^32, the lowest first; empty means "not an integer".
/// Stored as doubles, because a policy's state consists of numbers.
using WholeNumber = std::vector<double>;

inline bool is_whole(double x) { return x == std::floor(x) && std::isfinite(x); }

/// Converts a whole double of at least 0, exactly.
inline WholeNumber whole_number_of(double x) {
  WholeNumber digits;
  for (; x >= 1 || digits.empty(); x = std::floor(x * 0x1p-32)) {
    digits.push_back(std::fmod(x, 0x1p32));
  }
  return digits;
}

/// Multiplies by `factor`, a whole number of at most 2^53.
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

/// Rounds to nearest, ties to even; infinity if too large for binary64.
inline double to_double(const WholeNumber& digits) {
  // The highest 64 bits; sticky: any bit below them is set, which makes the lowest bit 1.
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
