// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/hadamard.hpp"

namespace halfscope::block {

Format hadamard_format(float limit) {
  for (const Format& format : {kBinary16, kBfloat16}) {
    if (to_double(format, format.largest_finite()) == limit) return format;
  }
  return kBinary32;
}

void hadamard(std::span<float> values, float limit) {
  const Format format = hadamard_format(limit);
  for (std::size_t at = 0; at < values.size(); at += kHadamard) {
    hadamard_row(format, values.data() + at, values.data() + at);
  }
}

}  // namespace halfscope::block
