// SPDX-License-Identifier: Apache-2.0
// The vector passes against one element at a time, on data made against them, and on every
// instruction set of this processor.
#include "halfscope/table/count/count.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/filler.hpp"
#include "tests/vector_target.hpp"

namespace test_count {

using namespace halfscope;

using Words = std::vector<std::uint32_t>;

std::uint32_t log_normal(std::mt19937_64& random, double mean, double deviation) {
  const double log2 = std::normal_distribution<double>(mean, deviation)(random);
  return std::bit_cast<std::uint32_t>(
      static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::exp2(log2)));
}

std::uint32_t with_field(std::uint64_t bits, std::uint64_t field) {
  return static_cast<std::uint32_t>((bits & 0x807FFFFF) | field << 23);
}

/// binary32 fractions at, below and above every standard cut.
Words fractions_at_cuts() {
  Words fractions{0, 0x7FFFFF};
  for (const std::uint64_t cut : standard_cuts()) {
    const auto at = static_cast<std::uint32_t>(cut >> 29);
    for (const std::uint32_t f : {at - 1, at, at + 1}) fractions.push_back(f & 0x7FFFFF);
  }
  return fractions;
}

struct Pattern {
  std::string name;
  std::function<std::uint32_t(std::mt19937_64&, std::size_t)> at;
};

std::uint32_t rare_fraction(std::mt19937_64& random, std::size_t) {
  static const Words fractions = fractions_at_cuts();
  return with_field(random() & 0x80000000, 100 + random() % 8) |
         fractions[random() % fractions.size()];
}

/// What the passes might get wrong: where hot binades change, where everything is gathered, where
/// a vector's zeros, subnormals, infinities and NaNs mix.
const std::vector<Pattern>& patterns() {
  using Random = std::mt19937_64&;
  using Index = std::size_t;
  static const std::vector<Pattern> all = {
      {"log-normal, deviation 3", [](Random r, Index) { return log_normal(r, -18, 3); }},
      {"log-normal, deviation 12", [](Random r, Index) { return log_normal(r, -18, 12); }},
      {"1 % zeros", [](Random r, Index) { return r() % 100 == 0 ? 0u : log_normal(r, -9, 2); }},
      {"two sets of binades, block by block",
       [](Random r, Index i) { return log_normal(r, i / 2048 % 2 == 0 ? -60 : 60, 3); }},
      {"two sets of binades, by turns",
       [](Random r, Index i) { return log_normal(r, i % 2 == 0 ? -60 : 60, 3); }},
      {"one binade", [](Random r, Index) { return with_field(r(), 117); }},
      {"every binade alike", [](Random r, Index) { return static_cast<std::uint32_t>(r()); }},
      {"every binade by turns", [](Random r, Index i) { return with_field(r(), i % 256); }},
      {"one value", [](Random, Index) { return 0x3FC00000u; }},
      {"one value of both signs",
       [](Random, Index i) { return i % 2 == 0 ? 0x3FC00000u : 0xBFC00000u; }},
      {"the least and the largest normal binade",
       [](Random r, Index) { return with_field(r(), r() % 2 == 0 ? 1 : 254); }},
      {"one power of two in 64, at each place",
       [](Random r, Index i) {
         return with_field(r() | 1, 100) & (i % 64 == i / 64 % 64 ? ~0x7FFFFFu : ~0u);
       }},
      {"two powers of two in 64, one of them last",
       [](Random r, Index i) {
         const bool power = i % 64 == 63 || i % 64 == i / 64 % 64;
         return with_field(r() | 1, 100) & (power ? ~0x7FFFFFu : ~0u);
       }},
      {"infinities of each sign at even and odd places",
       [](Random r, Index i) {
         return i % 5 == 0 ? static_cast<std::uint32_t>(r() & 0x80000000) | 0x7F800000u
                           : log_normal(r, -5, 2);
       }},
      {"zeros", [](Random, Index) { return 0u; }},
      {"zeros of both signs",
       [](Random r, Index) { return static_cast<std::uint32_t>(r() % 2) << 31; }},
      {"negative zeros, and few values",
       [](Random r, Index) { return r() % 64 == 0 ? log_normal(r, 0, 1) : 0x80000000u; }},
      {"NaNs", [](Random r, Index) { return with_field(r(), 255) | 1u; }},
      {"infinities", [](Random r, Index) { return with_field(r() & 0x80000000, 255); }},
      {"fractions at cuts", rare_fraction},
      {"subnormals", [](Random r, Index) { return with_field(r(), 0); }},
      {"the least subnormals",
       [](Random r, Index) { return static_cast<std::uint32_t>(r() & 0x80000003); }},
      {"subnormals, and the binade above",
       [](Random r, Index) { return with_field(r(), r() % 3); }},
      {"one odd value in a block",
       [](Random r, Index i) {
         const std::uint32_t odd[] = {1,          0x80000001, 0x007FFFFF, 0x00800000, 0x00FFFFFF,
                                      0x7F7FFFFF, 0xFF800000, 0x7FC00000, 0x7F800001};
         return i % 2048 == 77 ? odd[i / 2048 % std::size(odd)] : log_normal(r, -5, 2);
       }},
      {"powers of two", [](Random r, Index) { return log_normal(r, -18, 6) & 0xFF800000; }},
      {"binary16's bits", [](Random r, Index) { return log_normal(r, -8, 3) & 0xFFFFE000; }},
      {"narrow, then wide",
       [](Random r, Index i) { return log_normal(r, -8, 3) & (i < 9000 ? 0xFFFFE000 : ~0u); }},
  };
  return all;
}

/// A tensor's bytes, `offset` bytes into memory, so that it may be unaligned.
struct Tensor {
  Tensor(const Words& words, Dtype dtype, std::size_t offset)
      : dtype_(dtype), offset_(offset), count_(words.size()) {
    const std::size_t width = static_cast<std::size_t>(format_of(dtype).width / 8);
    bytes_.resize(offset + width * words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint64_t bits = words[i];
      // 16 bits: half of the time the value rounded, otherwise any encoding.
      if (width == 2) {
        const auto rounded = from_float(format_of(dtype), std::bit_cast<float>(words[i])).bits;
        bits = i / 4096 % 2 == 0 ? rounded : words[i] >> 7;
      }
      std::memcpy(bytes_.data() + offset + width * i, &bits, width);
    }
  }
  TensorView view() const { return {dtype_, bytes_.data() + offset_, count_}; }

 private:
  Dtype dtype_;
  std::size_t offset_, count_;
  std::vector<std::byte> bytes_;
};

void check(const Words& words, Dtype dtype, std::size_t offset) {
  const Tensor tensor(words, dtype, offset);
  const BinadeTable want = count_binades_scalar(tensor.view(), standard_cuts());
  CAPTURE(name_of(dtype), words.size(), offset);
  CHECK(count_binades(tensor.view(), 1) == want);
}

TEST_CASE("blocks made against the vector passes, on every instruction set", "[table]") {
  const std::vector<std::string> sets = targets();
  for (const Pattern& pattern : patterns()) {
    std::mt19937_64 random(1);
    Words words(20011);  // whole blocks, a part of one, and a part of a step
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = pattern.at(random, i);
    CAPTURE(pattern.name);
    for (const std::string& set : sets) {
      CAPTURE(set);
      const OnTarget on(set);
      for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        check(words, dtype, 0);
        check(words, dtype, 1);
      }
    }
  }
}

TEST_CASE("lengths around a step and a block", "[table]") {
  std::mt19937_64 random(2);
  Words words(4200);
  for (std::uint32_t& w : words) w = log_normal(random, -100, 20);
  for (const std::string& set : targets()) {
    CAPTURE(set);
    const OnTarget on(set);
    for (const std::size_t around : {512u, 576u, 2048u, 4096u}) {
      for (std::size_t n = around - 2; n <= around + 66; n += 1 + n % 3) {
        const Words some(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) check(some, dtype, 0);
      }
    }
  }
}

TEST_CASE("counters emptied within a tensor, as after 2^28 elements", "[table]") {
  for (const Pattern& pattern : patterns()) {
    std::mt19937_64 random(5);
    Words words(20011);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = pattern.at(random, i);
    const Tensor tensor(words, Dtype::f32, 0);
    CAPTURE(pattern.name);
    for (const std::string& set : targets()) {
      CAPTURE(set);
      const OnTarget on(set);
      const BinadeTable want = count_binades_scalar(tensor.view(), standard_cuts());
      for (const std::size_t chunk : {64u, 2048u, 8192u + 64u}) {
        CAPTURE(chunk);
        CHECK(count_by_blocks(tensor.view(), nullptr, chunk) == want);
      }
    }
  }
}

TEST_CASE("a pass leaves nothing behind for the next tensor", "[table]") {
  std::mt19937_64 random(3);
  for (const Pattern& pattern : patterns()) {
    Words words(3000);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = pattern.at(random, i);
    CAPTURE(pattern.name);
    for (const Dtype dtype : {Dtype::f16, Dtype::f32, Dtype::bf16}) check(words, dtype, 0);
  }
}

TEST_CASE("every binade of binary32 at every cut", "[table]") {
  Words words;
  for (const std::uint32_t fraction : fractions_at_cuts()) {
    for (std::uint32_t field = 0; field < 256; ++field) {
      for (const std::uint32_t sign : {0u, 1u})
        words.push_back(sign << 31 | field << 23 | fraction);
    }
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) check(words, dtype, 0);
  std::shuffle(words.begin(), words.end(), std::mt19937_64(4));
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) check(words, dtype, 0);
}

}  // namespace test_count
