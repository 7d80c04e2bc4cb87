// SPDX-License-Identifier: Apache-2.0
#include "analyzers/reduction/terms.hpp"

#include <cmath>

namespace halfscope::analyzers::reduction {

void add_beyond(std::size_t beyond, std::size_t addends, Facts& facts) {
  facts.nonfinite -= beyond;
  facts.elements += beyond;
  facts.overflow += beyond;
  facts.additions += beyond * (addends - 1);
}

std::vector<float> to_binary32(std::span<const double> addends, std::size_t sums,
                               BeyondBinary32& beyond) {
  std::vector<float> values(addends.begin(), addends.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(values[i]) && std::isfinite(addends[i])) beyond.insert(i % sums);
  }
  return values;
}

}  // namespace halfscope::analyzers::reduction
