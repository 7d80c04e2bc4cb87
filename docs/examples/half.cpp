// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "halfscope/number/half.hpp"
#include "halfscope/number/half_math.hpp"
#include "halfscope/number/half_stream.hpp"
#include "halfscope/number/text.hpp"

using halfscope::half;
using namespace halfscope::literals;

/// Runs with float, double and half alike.
template <typename T>
T norm(const std::vector<T>& x) {
  using std::fma;
  using std::sqrt;
  T squares(0);
  for (const T element : x) squares = fma(element, element, squares);
  return sqrt(squares);
}

int main() {
  // Each operation is rounded once, and happens at compile time if it can.
  static_assert(2048_h + 1_h == 2048_h);
  static_assert(65504_h + 16_h == std::numeric_limits<half>::infinity());

  // Adding ones stops where one is half a step.
  half sum(0);
  for (int i = 0; i < 5000; ++i) ++sum;
  std::printf("5000 ones: %s\n", to_text(sum).c_str());

  const std::vector<half> gradient = {1e-3_h, 2e-3_h, -2e-3_h};
  std::printf("norm: %s, exactly %s\n", to_text(norm(gradient)).c_str(),
              to_hex_text(halfscope::kBinary16, norm(gradient).bits()).c_str());

  // Text is rounded once, in any direction, and says what happened.
  const auto up = halfscope::from_text(halfscope::kBinary16, "65504.001",
                                       {.rounding = halfscope::Rounding::upward});
  std::printf("65504.001 upward: %s, overflow %d\n",
              halfscope::to_text(halfscope::kBinary16, up->bits).c_str(), up->flags.overflow);
}
