// SPDX-License-Identifier: Apache-2.0
// Access to elements of a tensor, which may be unaligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Returns element i; elements have the width of Bits.
template <typename Bits>
Bits load(const std::byte* data, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// Returns the encoding of element i.
inline std::uint64_t load(const TensorView& t, std::size_t i) {
  switch (format_of(t.dtype).width) {
    case 8: return load<std::uint8_t>(t.data, i);
    case 16: return load<std::uint16_t>(t.data, i);
    case 32: return load<std::uint32_t>(t.data, i);
    default: return load<std::uint64_t>(t.data, i);
  }
}

}  // namespace halfscope
