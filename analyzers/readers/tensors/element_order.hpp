// SPDX-License-Identifier: Apache-2.0
// Elements that lie in another order than C's, or in another byte order, as everything else reads
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfscope::analyzers::readers::tensors {

/// Where elements lie: along each axis so many, so many elements apart. Nothing is checked.
struct ElementOrder {
  std::span<const std::uint64_t> shape;
  std::span<const std::uint64_t> strides;
  std::size_t width = 0;  ///< bytes of an element
  bool big_endian = false;
};

/// Strides of C's order (the last axis fastest), or of Fortran's.
std::vector<std::uint64_t> strides_of(std::span<const std::uint64_t> shape,
                                      bool first_axis_fastest);

/// Whether that is C's order. Axes of one element have no say in it.
bool is_contiguous(const ElementOrder& order);

/// Copies all elements into little-endian bytes and C order; `data` is where the first one lies.
std::vector<std::byte> gathered(const ElementOrder& order, const std::byte* data);

}  // namespace halfscope::analyzers::readers::tensors
