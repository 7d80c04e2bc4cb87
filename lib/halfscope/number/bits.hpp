// SPDX-License-Identifier: Apache-2.0
// <bit> for host and device. The functions of std are constexpr but not __device__, so a kernel
// that calls them needs nvcc's --expt-relaxed-constexpr. The builtins work in both.
#pragma once

#include <cstdint>
#include <type_traits>

#include "halfscope/number/format.hpp"

namespace halfscope::detail {

/// Number of bits needed to write x: floor(log2(x)) + 1, and 0 for 0.
HALFSCOPE_HD constexpr int bit_width(std::uint64_t x) {
  return x == 0 ? 0 : 64 - __builtin_clzll(x);
}

template <typename To, typename From>
HALFSCOPE_HD constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  static_assert(std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

}  // namespace halfscope::detail
