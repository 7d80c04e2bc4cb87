// SPDX-License-Identifier: Apache-2.0
// Tables counted on the device equal the CPU's to the last count. Runs on the emulated device, too.
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"
#include "cuda/skip.hpp"
#include "cuda/table_samples.hpp"

namespace test_table {

/// Every encoding of 16 bits, in an order of no pattern.
Bits all_encodings() {
  Bits out(0x10000);
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = i * 40503 & 0xFFFF;
  return out;
}

/// binary32: every exponent with the fractions at and around every cut.
Bits boundary_fractions() {
  std::vector<std::uint32_t> fractions = {0, 1, 2, 0xFFF, 0x1000, 0x1001, 0x400000, 0x7FFFFF};
  for (const std::uint64_t cut : standard_cuts()) {
    for (const int off : {-1, 0, 1}) {
      fractions.push_back(
          (static_cast<std::uint32_t>(cut >> 29) + static_cast<std::uint32_t>(off)) & 0x7FFFFF);
    }
  }
  Bits out;
  for (std::uint32_t field = 0; field < 512; ++field) {
    for (const std::uint32_t fraction : fractions) out.push_back(field << 23 | fraction);
  }
  for (std::uint32_t k = 0; k < 23; ++k) {  // subnormals of every binade, more negative ones
    out.insert(out.end(), {1u << k, 0x80000000 | 1u << k, 0x80000000 | 1u << k});
  }
  return out;
}

/// Every kind of tensor there is, at lengths about those of vectors and parts.
Samples every_kind() {
  Samples out;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) out.emplace_back(dtype, all_encodings());
  out.emplace_back(Dtype::f32, boundary_fractions());
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    const Bits values = log_normal(dtype, 140000, 7);
    for (const std::ptrdiff_t n : {0, 1, 7, 8, 15, 16, 17, 1023, 65535, 65536, 65537, 131077}) {
      out.emplace_back(dtype, Bits(values.begin(), values.begin() + n));
    }
    const std::uint32_t sign = dtype == Dtype::f32 ? 0x80000000 : 0x8000;
    const auto infinity = static_cast<std::uint32_t>(format_of(dtype).infinity());
    out.emplace_back(dtype, Bits(1000, 0));
    out.emplace_back(dtype, Bits(1000, sign));
    out.emplace_back(dtype, Bits(1000, infinity));
    out.emplace_back(dtype, Bits(1000, infinity | sign));
    out.emplace_back(dtype, Bits(1000, infinity + 1));
    out.emplace_back(dtype, Bits(1000, (infinity + 1) | sign));
    out.emplace_back(dtype, Bits(1000, 1));  // the least subnormal
    out.emplace_back(dtype, Bits(1000, sign | 3));
  }
  out.emplace_back(Dtype::f32, narrow_floats(-24, 3, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(-24, 30, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(-149, 40, 5000));
  out.emplace_back(Dtype::f32, narrow_floats(100, 17, 5000));
  for (int k = -12; k <= 12; ++k) {  // one element alone decides on the lowest bit
    Bits ones(5000, std::bit_cast<std::uint32_t>(1.0f));
    ones[4096] = std::bit_cast<std::uint32_t>(std::ldexp(0x1.004p0f, k));
    out.emplace_back(Dtype::f32, ones);
  }
  return out;
}

TEST_CASE("tables of every kind of tensor, in one launch", "[cuda][table][gpu]") {
  if (skipped()) return;
  require_same(every_kind());
}

TEST_CASE("tables at every alignment of elements, moments the same", "[cuda][table][gpu]") {
  if (skipped()) return;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    for (const std::size_t n : {std::size_t{37}, std::size_t{70001}}) {
      Samples samples;
      const Bits values = log_normal(dtype, n, 3);
      for (std::size_t offset = 0; offset < 9; ++offset) {
        samples.emplace_back(dtype, values, offset);
      }
      const std::vector<TensorFacts> got = count(samples);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(name_of(dtype) << ", " << n << " elements, offset " << i);
        require_same(samples[i], got[i]);
        REQUIRE(got[i].moments.mean == got[0].moments.mean);
        REQUIRE(got[i].moments.sum_squares == got[0].moments.sum_squares);
      }
    }
  }
}

TEST_CASE("16-bit tensors counted by encodings", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    samples.emplace_back(dtype, all_encodings());
    samples.emplace_back(dtype, log_normal(dtype, 100003, 5), 1);
  }
  samples.emplace_back(Dtype::f16, Bits());
  samples.emplace_back(Dtype::f32, log_normal(Dtype::f32, 100, 5));  // by parts all the same
  samples.emplace_back(Dtype::f16, Bits(3000, 0x8000));
  require_same(samples, {.encodings_from = 0});
}

TEST_CASE("by encodings from a size on, in any order of the tensors", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  for (const std::size_t n : std::array<std::size_t, 4>{10, 1000, 999, 5}) {
    samples.emplace_back(Dtype::f16, log_normal(Dtype::f16, n, 9));
  }
  require_same(samples, {.encodings_from = 1000});
}

TEST_CASE("encodings that wrap their 16 bits around", "[cuda][table][gpu]") {
  if (skipped()) return;
  Samples samples;
  std::mt19937 random(16);
  for (const std::uint32_t other : {0x3C00u, 0xBC00u, 0x8000u, 0x7C00u}) {
    Bits same(200000, 0x3C00);  // 65,536 of one encoding, and more
    for (auto& bits : same) bits = random() % 2 == 0 ? bits : other;
    samples.emplace_back(Dtype::f16, same);
    samples.emplace_back(Dtype::bf16, same, 3);
  }
  for (const std::ptrdiff_t n : {65535, 65536, 65537, 131072}) {
    const Bits values(65536 * 3, 0xBC00);
    samples.emplace_back(Dtype::f16, Bits(values.begin(), values.begin() + n));
  }
  require_same(samples, {.encodings_from = 0});
}

TEST_CASE("what every step asks: largest, sum of squares, not finite", "[cuda][table][gpu]") {
  if (skipped()) return;
  const Samples samples = every_kind();
  const Stream stream;
  const std::vector<GradientSums> got = FactsCount(tensors_of(samples), stream.get()).get();
  REQUIRE(got.size() == samples.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i << ", " << name_of(samples[i].view().dtype));
    const GradientSums want = sums_of(samples[i]);
    REQUIRE(got[i].nan == want.nan);
    REQUIRE(got[i].infinity == want.infinity);
    REQUIRE(got[i].max_abs == want.max_abs);
    REQUIRE(are_close(got[i].sum_squares, want.sum_squares, want.sum_squares));
  }
}

}  // namespace test_table
