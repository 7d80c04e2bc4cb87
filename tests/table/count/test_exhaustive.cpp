// SPDX-License-Identifier: Apache-2.0
// The table's promise, all of it: for every binary32 pattern x and every k in [-40, 40] the counts
// equal those of rounding 2^k * x to binary16. The judge is the processor's F16C and shares nothing
// with the table: it multiplies, converts, and compares encodings.
//
// The judge's product 2^k * x is one binary32 multiplication. It is exact, except where it leaves
// binary32's range; and then the class is the same with or without its error: below 2^-126 an exact
// or a rounded product is far under 2^-25 and becomes zero, from 2^128 on both become infinity.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "catch.hpp"
#include "f16c.hpp"
#include "halfscope/table/count/count.hpp"
#include "number/judge.hpp"
#include "parallel.hpp"

namespace test_exhaustive {

#if HALFSCOPE_TEST_F16C

using namespace halfscope;

constexpr int kLargestScale = 40;
constexpr std::uint32_t kBlock = 1U << 16;  // consecutive patterns of one sign and one binade
constexpr std::uint64_t kBlocks = 1U << 16;

/// Of a block's values times 2^k rounded to binary16: not zero; at least the smallest normal;
/// infinite.
struct Reached {
  std::uint64_t nonzero = 0, normal = 0, overflow = 0;
  friend bool operator==(const Reached&, const Reached&) = default;
};

/// Sixteen lanes of 16 bits that count down by one where a comparison held.
__attribute__((target("avx2"))) std::uint64_t sum_of_lanes(__m256i minus_counts) {
  alignas(32) std::uint16_t lanes[16];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                     _mm256_sub_epi16(_mm256_setzero_si256(), minus_counts));
  std::uint64_t sum = 0;
  for (const std::uint16_t lane : lanes) sum += lane;
  return sum;
}

/// Rounds 2^k times every pattern of a block. 4096 rounds of 16 lanes: no 16-bit count can wrap.
__attribute__((target("avx2,f16c"))) Reached round_block(std::uint32_t first, int k) {
  const __m256 scale = _mm256_set1_ps(std::ldexp(1.0f, k));
  const __m256i step = _mm256_set1_epi32(16);
  const __m256i magnitude_mask = _mm256_set1_epi16(0x7FFF);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i largest_subnormal = _mm256_set1_epi16(0x03FF);
  const __m256i largest_finite = _mm256_set1_epi16(0x7BFF);
  __m256i low = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
  __m256i nonzero = zero, normal = zero, overflow = zero;
  for (std::uint32_t i = 0; i < kBlock; i += 16) {
    const __m128i half_low = _mm256_cvtps_ph(_mm256_mul_ps(_mm256_castsi256_ps(low), scale), 0);
    const __m128i half_high = _mm256_cvtps_ph(_mm256_mul_ps(_mm256_castsi256_ps(high), scale), 0);
    const __m256i half = _mm256_and_si256(_mm256_set_m128i(half_high, half_low), magnitude_mask);
    nonzero = _mm256_add_epi16(nonzero, _mm256_cmpgt_epi16(half, zero));
    normal = _mm256_add_epi16(normal, _mm256_cmpgt_epi16(half, largest_subnormal));
    overflow = _mm256_add_epi16(overflow, _mm256_cmpgt_epi16(half, largest_finite));
    low = _mm256_add_epi32(low, step);
    high = _mm256_add_epi32(high, step);
  }
  return {sum_of_lanes(nonzero), sum_of_lanes(normal), sum_of_lanes(overflow)};
}

Reached reached(const Classes& c) {
  if (!c.subnormal.exact() || !c.normal.exact() || !c.overflow.exact()) return {};
  const std::uint64_t normal = c.normal.low + c.overflow.low;
  return {c.subnormal.low + normal, normal, c.overflow.low};
}

const std::vector<Boundaries>& limits_by_scale() {
  static const std::vector<Boundaries> limits = [] {
    std::vector<Boundaries> all;
    for (int k = -kLargestScale; k <= kLargestScale; ++k) {
      all.push_back(boundaries(kBinary16, std::ldexp(1.0, k)));
    }
    return all;
  }();
  return limits;
}

BinadeTable table_of_block(std::uint32_t first) {
  std::vector<std::uint32_t> patterns(kBlock);
  for (std::uint32_t i = 0; i < kBlock; ++i) patterns[i] = first + i;
  return count_binades({Dtype::f32, reinterpret_cast<const std::byte*>(patterns.data()), kBlock},
                       1);
}

/// Empty when the block's table says at every scale what rounding says.
std::string judged_block(std::uint64_t block, const BinadeTable& table) {
  const std::uint32_t first = static_cast<std::uint32_t>(block) * kBlock;
  const bool finite = (first & 0x7F800000U) != 0x7F800000U;
  for (int k = -kLargestScale; k <= kLargestScale; ++k) {
    const Reached want = finite ? round_block(first, k) : Reached{};
    const Classes classes =
        classify(table, limits_by_scale()[static_cast<std::size_t>(k + kLargestScale)]);
    const Reached got = reached(classes);
    const bool complete = classes.flushed_to_zero == table.finite_nonzero() - got.nonzero;
    if (got == want && complete) continue;
    return fmt::format(
        "patterns {:#010x} to {:#010x}, scale 2^{}: nonzero {} (want {}), normal {} "
        "(want {}), overflow {} (want {})",
        first, first + kBlock - 1, k, got.nonzero, want.nonzero, got.normal, want.normal,
        got.overflow, want.overflow);
  }
  return {};
}

/// Judges blocks block_at(0), block_at(1), ... and returns all their tables merged.
template <typename BlockAt>
BinadeTable judge_blocks(std::uint64_t count, BlockAt block_at, std::string& wrong) {
  std::mutex mutex;
  BinadeTable all;
  parallel_for(count, [&](std::uint64_t i) {
    const std::uint64_t block = block_at(i);
    const BinadeTable table = table_of_block(static_cast<std::uint32_t>(block) * kBlock);
    const std::string found = judged_block(block, table);
    const std::lock_guard lock(mutex);
    all.merge(table);
    if (!found.empty()) wrong = found;
  });
  return all;
}

/// How many of a block's patterns the oracle sees in the class or above: within a block magnitudes
/// ascend, and rounding keeps their order, so the first one is found by bisection.
std::uint64_t count_by_oracle(std::uint32_t block, int k, oracle::Class wanted) {
  const auto below = [&](std::uint32_t bits) {
    if (bits == 0) return true;
    const oracle::Rational x = oracle::value(oracle::layout("binary32"), bits);
    return oracle::class_of(oracle::layout("binary16"), x * oracle::power_of_two(k)) < wanted;
  };
  std::uint32_t first = block;
  std::uint32_t end = block + kBlock;
  while (first < end) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (below(middle)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return block + kBlock - first;
}

bool skipped() {
  if (f16c::available()) return false;
  WARN("skipped: this processor has no F16C");
  return true;
}

TEST_CASE("the judge agrees with the oracle beside every boundary", "[table][f16c][oracle]") {
  if (skipped()) return;
  for (int k = -kLargestScale; k <= kLargestScale; ++k) {
    // binary16's three boundaries, and where the product leaves binary32's range.
    for (const double boundary : {0x1p-25, 0x1.ffcp-15, 65520.0, 0x1p-126, 0x1.8p-149, 0x1p127}) {
      const auto x = static_cast<float>(std::ldexp(boundary, -k));
      if (!std::isfinite(x)) continue;
      const std::uint32_t block = std::bit_cast<std::uint32_t>(x) & ~(kBlock - 1);
      CAPTURE(k, boundary, block);
      const Reached want = {count_by_oracle(block, k, oracle::Class::subnormal),
                            count_by_oracle(block, k, oracle::Class::normal),
                            count_by_oracle(block, k, oracle::Class::overflow)};
      REQUIRE(round_block(block, k) == want);
      REQUIRE(round_block(block | 0x80000000U, k) == want);
    }
  }
}

TEST_CASE("three blocks of every binade of binary32 at every scale", "[table][f16c]") {
  if (skipped()) return;
  // A binade is 128 blocks: its first, its last, and one between them that changes.
  const auto block_at = [](std::uint64_t i) {
    const std::uint64_t within[] = {0, 1 + i * 37 % 126, 127};
    return i / 3 * 128 + within[i % 3];
  };
  std::string wrong;
  judge_blocks(512 * 3, block_at, wrong);
  REQUIRE(wrong == "");
}

TEST_CASE("all 2^32 binary32 patterns at every scale from 2^-40 to 2^40",
          "[table][f16c][.exhaustive]") {
  if (skipped()) return;
  std::string wrong;
  const BinadeTable all = judge_blocks(
      kBlocks, [](std::uint64_t i) { return i; }, wrong);
  REQUIRE(wrong == "");
  const std::uint64_t nans = 2 * ((std::uint64_t{1} << 23) - 1);
  CHECK(all.specials() == SpecialCounts{.zero = 2,
                                        .negative_zero = 1,
                                        .nan = nans,
                                        .positive_infinity = 1,
                                        .negative_infinity = 1});
  CHECK(all.total() == std::uint64_t{1} << 32);
}

#endif  // HALFSCOPE_TEST_F16C

}  // namespace test_exhaustive
