// SPDX-License-Identifier: Apache-2.0
// Arrays against the scalar emulator on every input there is: all binary32 patterns, all pairs of
// binary16 encodings.
#include <atomic>
#include <numeric>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "inputs.hpp"
#include "tests/parallel.hpp"

namespace test_exhaustive {

using namespace arrays;

constexpr std::uint64_t kBlock = 1 << 16;

/// First wrong pattern of a block of 2^16, plus one; 0 when none is.
std::uint64_t first_wrong_conversion(Format f, const ArrayOptions& options, std::uint64_t block) {
  std::vector<float> in(kBlock);
  for (std::uint64_t i = 0; i < kBlock; ++i) {
    in[i] = std::bit_cast<float>(static_cast<std::uint32_t>(block * kBlock + i));
  }
  std::vector<std::uint16_t> out(kBlock);
  const Flags flags = convert(f, in, out, options);
  Flags all;
  for (std::uint64_t i = 0; i < kBlock; ++i) {
    const Rounded want = convert(f, kBinary32, block * kBlock + i, modes_of(options, i));
    if (out[i] != want.bits) return block * kBlock + i + 1;
    all |= want.flags;
  }
  return flags == all ? 0 : (block + 1) * kBlock;
}

/// The same for a = block, every b.
std::uint64_t first_wrong_pair(const ArrayOptions& options, std::uint64_t block) {
  const std::vector<std::uint16_t> a(kBlock, static_cast<std::uint16_t>(block));
  std::vector<std::uint16_t> b(kBlock), sums(kBlock), products(kBlock);
  std::iota(b.begin(), b.end(), std::uint16_t{0});
  Flags flags = add(kBinary16, a, b, sums, options);
  flags |= multiply(kBinary16, a, b, products, options);
  Flags all;
  for (std::uint64_t i = 0; i < kBlock; ++i) {
    const Rounded sum = add(kBinary16, block, i, options.modes);
    const Rounded product = multiply(kBinary16, block, i, options.modes);
    if (sums[i] != sum.bits || products[i] != product.bits) return block * kBlock + i + 1;
    all |= sum.flags | product.flags;
  }
  return flags == all ? 0 : (block + 1) * kBlock;
}

template <class First>
std::string wrong_input(const First& first) {
  std::atomic<std::uint64_t> wrong = 0;
  parallel_for(kBlock, [&](std::uint64_t block) {
    const std::uint64_t found = first(block);
    if (found != 0) wrong = found;
  });
  return wrong == 0 ? "" : fmt::format("{:08X}", wrong - 1);
}

TEST_CASE("all 2^32 binary32 patterns to 16 bits", "[array][convert][.exhaustive]") {
  struct Row {
    Format format;
    Rounding rounding;
  };
  const Row rows[] = {{kBinary16, Rounding::ties_to_even},
                      {kBinary16, Rounding::upward},
                      {kBinary16, Rounding::ties_to_away},
                      {kBinary16, Rounding::stochastic},
                      {kBfloat16, Rounding::ties_to_even}};
  for (const Row& row : rows) {
    const ArrayOptions options = {.modes = {.rounding = row.rounding}, .seed = 9, .threads = 1};
    CAPTURE(row.format.precision, static_cast<int>(row.rounding));
    CHECK(wrong_input([&](std::uint64_t block) {
            return first_wrong_conversion(row.format, options, block);
          }) == "");
  }
}

TEST_CASE("all 2^32 pairs of binary16 added and multiplied", "[array][arithmetic][.exhaustive]") {
  for (const Rounding rounding : {Rounding::ties_to_even, Rounding::ties_to_away}) {
    const ArrayOptions options = {.modes = {.rounding = rounding}, .threads = 1};
    CAPTURE(static_cast<int>(rounding));
    CHECK(wrong_input([&](std::uint64_t block) { return first_wrong_pair(options, block); }) == "");
  }
}

}  // namespace test_exhaustive
