// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/hadamard.hpp"

#include <bit>

#include "halfscope/number/convert.hpp"

namespace halfscope::block {
namespace {

/// Returns the format whose largest finite number is `limit`.
Format format_with(float limit) {
  for (const Format& format : {kBinary16, kBfloat16}) {
    if (to_double(format, format.largest_finite()) == limit) return format;
  }
  return kBinary32;
}

}  // namespace

void hadamard(std::span<float> values, float limit) {
  const Format format = format_with(limit);
  for (std::size_t at = 0; at < values.size(); at += kHadamard) {
    std::array<float, kHadamard> sums{};
    for (std::size_t k = 0; k < kHadamard; ++k) {
      const float quarter = values[at + k] * kHadamardSigns[k] * 0.25F;
      for (std::size_t j = 0; j < kHadamard; ++j) {
        sums[j] += std::popcount(j & k) % 2 == 0 ? quarter : -quarter;
      }
    }
    for (std::size_t j = 0; j < kHadamard; ++j) {
      const double rounded = to_double(format, from_float(format, sums[j]).bits);
      values[at + j] = static_cast<float>(rounded);
    }
  }
}

}  // namespace halfscope::block
