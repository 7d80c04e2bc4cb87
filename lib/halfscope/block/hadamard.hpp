// SPDX-License-Identifier: Apache-2.0
// The random Hadamard transform of NVFP4's recipe: rows of 16 values times diag(signs) H / 4, where
// H is Sylvester's matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/number/convert.hpp"

namespace halfscope::block {

inline constexpr std::size_t kHadamard = 16;
/// Transformer Engine's signs (get_wgrad_sign_vector), which torchao has too: bit k is set if value
/// k is negated.
inline constexpr std::uint32_t kHadamardNegated = 0xD7E8;

/// Transforms 16 values; `out` may be `in`. Each sum is added in order, in binary32, and rounded to
/// `format`. A library that multiplies matrices adds in an order of its own, so that a last bit may
/// differ where a sum is not exact.
HALFSCOPE_HD constexpr void hadamard_row(const Format& format, const float* in, float* out) {
  constexpr std::uint32_t kOddBits = 0x6996;  // bit n is set if n has an odd number of ones
  float sums[kHadamard] = {};
  for (std::size_t k = 0; k < kHadamard; ++k) {
    const float quarter = in[k] * ((kHadamardNegated >> k & 1) != 0 ? -0.25F : 0.25F);
    for (std::size_t j = 0; j < kHadamard; ++j) {
      sums[j] += (kOddBits >> (j & k) & 1) != 0 ? -quarter : quarter;
    }
  }
  for (std::size_t j = 0; j < kHadamard; ++j) {
    out[j] = static_cast<float>(to_double(format, from_float(format, sums[j]).bits));
  }
}

/// Transforms each 16 consecutive values in place; the number of values must be a multiple of 16.
/// type: of the values before they were converted to binary32. Sums are rounded to it.
void hadamard(std::span<float> values, const Format& type);

}  // namespace halfscope::block
