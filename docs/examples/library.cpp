// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include "halfscope/halfscope.hpp"

int main() {
  using namespace halfscope;

  // Numbers: rounded once an operation, to nearest, ties to even.
  half sum = 0_h;
  for (int i = 0; i < 4096; ++i) sum += 1_h;
  std::printf("4096 ones add up to %s in binary16\n", to_text(sum).c_str());

  // Encodings: any format, any direction, and the IEEE flags.
  const Rounded up = convert(kBinary16, kBinary32, 0x3F800001, {.rounding = Rounding::upward});
  std::printf("next to 1 upward is %s, inexact: %d\n", to_text(kBinary16, up.bits).c_str(),
              up.flags.inexact);

  // Arrays: element by element the same, near the speed of memory.
  std::vector<float> gradients = {1e-8f, 1e-5f, 0.1f, 1e5f};
  const Flags flags = quantise(kBinary16, gradients, {.modes = {.saturate = true}});
  std::printf("gradients in binary16:");
  for (const float g : gradients) std::printf(" %g", g);
  std::printf(", overflow: %d, underflow: %d\n", flags.overflow, flags.underflow);

  // Block formats by recipe: in MXFP4 32 elements of E2M1 share a power of two.
  const block::Recipe& recipe = block::recipe_named("mxfp4-rceil");
  const std::vector<float> values = {0.013f, -0.04f, 0.1f};
  const block::Quantised quantised = block::quantise(recipe, {values, 1, 3});
  std::printf("a block of E2M1:");
  for (const float x : block::dequantise(recipe, quantised, 1, 3)) std::printf(" %g", x);
  std::printf("\n");
}
