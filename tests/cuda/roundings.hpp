// SPDX-License-Identifier: Apache-2.0
// How an operation on a device rounds to binary16 what it adds to a sum that it computes.
#pragma once

#include <cstdio>
#include <string>

#include "halfscope/number/half.hpp"

namespace halfscope::test {

/// Of results that are a sum and something added, in binary16: how many are rounded once, and how
/// many have the sum rounded before, too. Where both give the same, nothing is counted.
struct Roundings {
  int once = 0, twice = 0, neither = 0;

  void count(double found, double sum, double added) {
    const auto rounded = [](double value) { return double{half(value)}; };
    const double in_one = rounded(sum + added), in_two = rounded(rounded(sum) + added);
    if (in_one == in_two) return;
    ++(found == in_one ? once : found == in_two ? twice : neither);
  }
  /// As a fact of the summary of ./run gpu.
  void tell(const std::string& what) const {
    std::printf("fact: %s, added in F16 = rounded once %d, twice %d, neither %d\n", what.c_str(),
                once, twice, neither);
  }
};

}  // namespace halfscope::test
