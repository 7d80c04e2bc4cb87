// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/hadamard.hpp"

namespace halfscope::block {

void hadamard(std::span<float> values, const Format& type) {
  for (std::size_t at = 0; at < values.size(); at += kHadamard) {
    hadamard_row(type, values.data() + at, values.data() + at);
  }
}

}  // namespace halfscope::block
