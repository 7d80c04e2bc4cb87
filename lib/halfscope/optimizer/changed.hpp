// SPDX-License-Identifier: Apache-2.0
// Elements whose copies in a narrow format differ between two tensors: the weights that move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/table/count/count.hpp"

namespace halfscope::optimizer {

/// Returns the dtype of a tensor's copies: its own if that has 16 bits or less, else `copies`.
Dtype copy_dtype(Dtype tensor, Dtype copies);

/// Writes the copies of elements [first, first + n) in copy_dtype(), little-endian, to `to`. A
/// wider element is rounded once, ties to even; each of its NaNs becomes the positive quiet NaN.
void copies_of(const TensorView& tensor, Dtype copies, std::size_t first, std::size_t n,
               std::byte* to);

/// Compares the copies of elements [first, first + n) of two tensors of one dtype by their bytes:
/// -0 differs from +0. Sets bit i % 8 of bits[i / 8] to 1 if copy first + i differs, else to 0, and
/// fills the last of the (n + 7) / 8 bytes with zeros. Returns the number of differing copies.
std::uint64_t changed(const TensorView& a, const TensorView& b, Dtype copies, std::size_t first,
                      std::size_t n, std::span<std::uint8_t> bits);

/// Returns the number of bits that are 1.
std::uint64_t count_bits(std::span<const std::uint8_t> bits);

}  // namespace halfscope::optimizer
