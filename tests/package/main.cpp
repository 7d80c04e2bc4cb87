// SPDX-License-Identifier: Apache-2.0
// Uses the installed library as a stranger would: each part once, the result known.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "halfscope/block/conform.hpp"
#include "halfscope/halfscope.hpp"
#include "halfscope/number/operation_table.hpp"
#include "halfscope/table/count/count.hpp"
#include "halfscope/version.hpp"

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

void check_arrays() {
  using namespace halfscope;
  const std::vector<float> in = {1.0f, 65520.0f, 0x1p-25f};
  std::vector<std::uint16_t> out(3), twice(3);
  const Flags flags = convert(kBinary16, std::span<const float>(in), std::span(out));
  check(out == std::vector<std::uint16_t>{0x3C00, 0x7C00, 0x0000}, "array convert");
  check(flags == Flags{.overflow = true, .underflow = true, .inexact = true}, "array flags");
  add(kBinary16, out, out, twice);
  check(twice == std::vector<std::uint16_t>{0x4000, 0x7C00, 0x0000}, "array add");
}

void check_blocks() {
  using namespace halfscope;
  const std::vector<float> values = {448.0f, 1.0f};
  const block::Recipe& recipe = block::recipe_named("mxfp8-e4m3-floor");
  const block::Quantised out = block::quantise(recipe, {values, 1, 2});
  check(out.codes == std::vector<std::uint8_t>{0x7E, 0x38}, "codes of an MX block");
  check(out.scales == std::vector<std::uint32_t>{127}, "scale of an MX block");
  check(block::dequantise(recipe, out, 1, 2) == values, "values of an MX block");
  const block::Conformity found = block::conform(recipe, {values, 1, 2}, out);
  check(found.conforms(), "an output conforms to its recipe");
}

}  // namespace

int main() {
  using namespace halfscope;
  static_assert(add(kBinary16, 0x3C00, 0x3C00).bits == 0x4000, "1 + 1 = 2 at compile time");
  static_assert(0.5_h + 0.25_h == 0.75_h);
  check(fused_multiply_add(kBinary16, 0x39C0, 0xC3FE, 0x07FE).bits == 0xC1BF, "exact fma");
  check(to_text(sqrt(half(2))) == "1.414", "half and text");
  check(from_text<half>("65520")->bits() == 0x7C00, "text to half");
  check(find_operation("f16_mulAdd") != nullptr, "operation table");
  check_arrays();
  check_blocks();
  const std::vector<float> values = {1.0f, 0.0f};
  check(count_binades(view_of(values)).total() == 2, "binade table");
  check(!kVersion.empty(), "version");
  return failures == 0 ? 0 : 1;
}
