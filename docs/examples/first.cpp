// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <vector>

#include "halfscope/table/count.hpp"

int main() {
  using namespace halfscope;
  const std::vector<float> gradients = {2e-9f, 3e-8f, 1e-5f, 0.25f};
  const BinadeTable table = count_binades(view_of(gradients));
  for (const int k : {0, 10}) {
    const Classes c = classify(table, boundaries(kBinary16, std::ldexp(1.0, k)));
    std::printf("loss scale 2^%d: %lu become zero, %lu subnormal\n", k, c.flushed_to_zero.low,
                c.subnormal.low);
  }
}
