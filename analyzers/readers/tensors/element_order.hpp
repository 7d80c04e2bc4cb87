// SPDX-License-Identifier: Apache-2.0
// Converts arrays in another element order than C's, or in big-endian byte order, to little-endian
// C order, which is what all other code reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfscope::analyzers::readers::tensors {

/// The memory layout of an array. Nothing is checked.
struct ElementOrder {
  std::span<const std::uint64_t> shape;
  std::span<const std::uint64_t> strides;  ///< in elements; one for each axis
  std::size_t width = 0;                   ///< bytes per element
  bool big_endian = false;
};

/// Returns the strides, in elements, of C order, or of Fortran order if `first_axis_fastest`.
std::vector<std::uint64_t> strides_of(std::span<const std::uint64_t> shape,
                                      bool first_axis_fastest);

/// Returns true if the elements are contiguous in C order. Axes of extent 1 may have any stride.
bool is_contiguous(const ElementOrder& order);

/// Returns all elements as little-endian bytes in C order. `data` points to the first element.
std::vector<std::byte> gathered(const ElementOrder& order, const std::byte* data);

}  // namespace halfscope::analyzers::readers::tensors
