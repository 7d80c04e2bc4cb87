// SPDX-License-Identifier: Apache-2.0
// Arrays of MX blocks: they are their blocks, one after the other
// (test_block.cpp judges a block).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/block.hpp"

namespace test_block_arrays {

using namespace halfscope;

using Codes = std::vector<std::uint8_t>;

/// Values of both signs over some 40 binades, zeros and subnormals among them;
/// no two blocks alike.
std::vector<float> mixed(std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto k = static_cast<int>(i * 7 % 40) - 20 - (i % 64 > 50 ? 120 : 0);
    const float significand = 1.0f + static_cast<float>(i * 37 % 101) / 101.0f;
    out[i] = i % 13 == 0 ? 0.0f : std::ldexp(i % 3 == 0 ? -significand : significand, k);
  }
  return out;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float v : values) out.push_back(detail::bit_cast<std::uint32_t>(v));
  return out;
}

TEST_CASE("an array is its blocks, the last one short", "[number][block]") {
  for (const std::size_t n : {0, 1, 31, 32, 33, 64, 100}) {
    CAPTURE(n);
    const std::vector<float> values = mixed(n);
    BlockOptions options = {.rule = ScaleRule::round_up, .seed = 3, .first_index = 17};
    options.modes.rounding = Rounding::stochastic;
    Codes codes(n, 0xEE), scales(block_count(n), 0xEE);
    const Flags flags =
        quantise_blocks(kFloat8E4M3, std::span<const float>(values), codes, scales, options);
    Codes by_hand(n), scales_by_hand;
    Flags flags_by_hand;
    for (std::size_t start = 0; start < n; start += 32) {
      options.first_index = 17 + start;
      const BlockScale block =
          quantise_block(kFloat8E4M3, &values[start], std::min(n - start, std::size_t{32}),
                         &by_hand[start], options);
      scales_by_hand.push_back(block.scale);
      flags_by_hand |= block.flags;
    }
    CHECK(codes == by_hand);
    CHECK(scales == scales_by_hand);
    CHECK((flags == flags_by_hand));
    CHECK(scales.size() == (n + 31) / 32);
  }
}

TEST_CASE("in place is there and back", "[number][block]") {
  for (const Format f : {kFloat8E5M2, kFloat8E4M3, kFloat6E3M2, kFloat6E2M3, kFloat4E2M1}) {
    const std::vector<float> values = mixed(100);
    Codes codes(100), scales(4);
    std::vector<float> there_and_back(100), in_place = values;
    Flags flags = quantise_blocks(f, std::span<const float>(values), codes, scales);
    flags |= dequantise_blocks(f, codes, scales, there_and_back);
    const Flags flags_in_place = quantise_blocks(f, std::span<float>(in_place));
    CHECK(bits_of(in_place) == bits_of(there_and_back));
    CHECK((flags == flags_in_place));
    CHECK(bits_of(in_place) != bits_of(values));
    const Flags again = quantise_blocks(f, std::span<float>(in_place));
    CHECK(bits_of(in_place) == bits_of(there_and_back));
    CHECK((again == Flags{}));
  }
}

TEST_CASE("a value next to 2^128 may round up to it", "[number][block]") {
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> values = {largest};
  CHECK((quantise_blocks(kFloat4E2M1, std::span<float>(values)) ==
         Flags{.overflow = true, .inexact = true}));
  CHECK(values[0] == 0x1.8p127f);
  values = {largest};
  quantise_blocks(kFloat4E2M1, std::span<float>(values), {.rule = ScaleRule::round_up});
  CHECK(values[0] == std::numeric_limits<float>::infinity());
  values = {largest};
  quantise_blocks(kFloat4E2M1, std::span<float>(values),
                  {.rule = ScaleRule::round_up, .modes = {.saturate = true}});
  CHECK(values[0] == largest);
}

TEST_CASE("subnormals may be taken for zeros", "[number][block][table]") {
  const std::vector<float> subnormals = {0x1p-127f, -0x1p-130f};
  Codes codes(2), scales(1);
  const std::span<const float> values(subnormals);
  quantise_blocks(kFloat8E5M2, values, codes, scales, {.modes = {.denormals_are_zero = true}});
  CHECK(scales == Codes{0});
  CHECK(codes == Codes{0, 0x80});
  quantise_blocks(kFloat8E5M2, values, codes, scales);
  CHECK(codes == Codes{0x3C, 0xB0});

  // In a block under 1, E2M1's 0.5 is subnormal: FTZ does not write it, DAZ
  // does not read it.
  const std::vector<float> small = {4.0f, 0.5f};
  const Flags flags = quantise_blocks(kFloat4E2M1, std::span<const float>(small), codes, scales,
                                      {.modes = {.flush_to_zero = true}});
  CHECK(codes == Codes{6, 0});
  CHECK((flags == Flags{.underflow = true, .inexact = true}));
  std::vector<float> out(2);
  dequantise_blocks(kFloat4E2M1, Codes{6, 1}, scales, out, {.denormals_are_zero = true});
  CHECK(bits_of(out) == bits_of({4.0f, 0.0f}));
}

TEST_CASE("in place, what a block holds is not flushed on the way back", "[number][block]") {
  std::vector<float> values = {4.0f, 0.5f, 0x1p-140f};
  const Flags flags = quantise_blocks(kFloat4E2M1, std::span<float>(values),
                                      {.modes = {.denormals_are_zero = true}});
  CHECK(bits_of(values) == bits_of({4.0f, 0.5f, 0.0f}));
  CHECK((flags == Flags{}));
  values = {0x1p-133f, -0x1p-134f};
  quantise_blocks(kFloat8E5M2, std::span<float>(values), {.modes = {.flush_to_zero = true}});
  CHECK(bits_of(values) == bits_of({0x1p-133f, -0x1p-134f}));
}

TEST_CASE("lengths and formats that do not fit are named", "[number][block]") {
  std::vector<float> values(33);
  Codes codes(33), scales(2), short_codes(32), one_scale(1);
  const std::span<const float> in(values);
  CHECK_THROWS_WITH(quantise_blocks(kFloat8E4M3, in, codes, one_scale),
                    "MX blocks: 33 values need as many elements and 2 scales, not 33 and 1");
  CHECK_THROWS_WITH(quantise_blocks(kFloat8E4M3, in, short_codes, scales),
                    "MX blocks: 33 values need as many elements and 2 scales, not 32 and 2");
  CHECK_THROWS_AS(dequantise_blocks(kFloat8E4M3, codes, one_scale, values), std::invalid_argument);
  CHECK_THROWS_WITH(quantise_blocks(kBinary16, std::span<float>(values)),
                    "MX blocks: an element has 8 bits or fewer, this format 16");
}

}  // namespace test_block_arrays
