// SPDX-License-Identifier: Apache-2.0
// Elements of a tensor, which need not be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Element i of elements that are as wide as Bits.
template <typename Bits>
Bits load(const std::byte* data, std::size_t i) {
  Bits bits;
  std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// The encoding of element i.
inline std::uint64_t load(const TensorView& t, std::size_t i) {
  switch (format_of(t.dtype).width) {
    case 8: return load<std::uint8_t>(t.data, i);
    case 16: return load<std::uint16_t>(t.data, i);
    case 32: return load<std::uint32_t>(t.data, i);
    default: return load<std::uint64_t>(t.data, i);
  }
}

}  // namespace halfscope
