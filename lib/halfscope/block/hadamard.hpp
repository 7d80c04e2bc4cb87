// SPDX-License-Identifier: Apache-2.0
// The random Hadamard transform of NVFP4's recipe: rows of 16 values times diag(signs) H / 4, where
// H is Sylvester's matrix.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace halfscope::block {

inline constexpr std::size_t kHadamard = 16;
/// Transformer Engine's signs (get_wgrad_sign_vector), which torchao has too.
inline constexpr std::array<float, kHadamard> kHadamardSigns = {1,  1,  1,  -1, 1,  -1, -1, -1,
                                                                -1, -1, -1, 1,  -1, 1,  -1, -1};

/// Transforms each 16 consecutive values in place; the number of values must be a multiple of 16.
/// Each sum is added in order, in binary32, and rounded to the type that the values came in: limit
/// is its largest finite number. A library that multiplies matrices adds in an order of its own, so
/// that a last bit may differ where a sum is not exact.
void hadamard(std::span<float> values, float limit);

}  // namespace halfscope::block
