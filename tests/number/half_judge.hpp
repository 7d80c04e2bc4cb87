// SPDX-License-Identifier: Apache-2.0
// A judge for functions of binary16 with results in binary16, ties to even, that shares no code
// with the library: it counts how many midpoints between neighbouring encodings lie below the
// result.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace half_judge {

/// Wide enough for every product of two numbers of binary16 plus a third, in units of 2^-48.
__extension__ using Int128 = __int128;

inline constexpr std::uint16_t kInfinity = 0x7C00;

inline bool is_nan(std::uint16_t a) { return (a & 0x7FFF) > kInfinity; }
inline bool is_infinite(std::uint16_t a) { return (a & 0x7FFF) == kInfinity; }
inline bool is_negative(std::uint16_t a) { return (a & 0x8000) != 0; }

/// The magnitude of an encoding in units of 2^-24; of infinity's: the number that would come next.
inline std::int64_t units(int code) {
  const int field = code / 1024;
  return field == 0 ? code : static_cast<std::int64_t>(1024 + code % 1024) << (field - 1);
}

inline std::int64_t signed_units(std::uint16_t a) {
  return is_negative(a) ? -units(a & 0x7FFF) : units(a);
}

/// kMidpoints[k], in units of 2^-25, lies half way between encodings k and k + 1.
inline const std::array<std::int64_t, 0x7C00>& midpoints() {
  static const auto table = [] {
    std::array<std::int64_t, 0x7C00> out{};
    for (int k = 0; k < 0x7C00; ++k) out[static_cast<std::size_t>(k)] = units(k) + units(k + 1);
    return out;
  }();
  return table;
}

/// Ties to even by definition: order(m) is < 0, 0, > 0 as the midpoint m * 2^-25 lies below, at,
/// above the magnitude to be rounded.
template <typename Order>
std::uint16_t round(bool negative, Order order) {
  const auto& m = midpoints();
  const auto first = std::partition_point(m.begin(), m.end(), [&](auto x) { return order(x) < 0; });
  auto code = static_cast<std::uint16_t>(first - m.begin());
  if (first != m.end() && order(*first) == 0 && code % 2 == 1) ++code;
  return static_cast<std::uint16_t>(code | (negative ? 0x8000 : 0));
}

inline int sign_of(Int128 x) { return x < 0 ? -1 : x > 0 ? 1 : 0; }

/// An exact nonzero value in units of 2^-48.
inline std::uint16_t round_exact(Int128 value) {
  const Int128 magnitude = value < 0 ? -value : value;
  return round(value < 0,
               [&](std::int64_t m) { return sign_of(Int128{m} * (1 << 23) - magnitude); });
}

}  // namespace half_judge
