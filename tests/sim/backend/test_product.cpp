// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/product.hpp"

#include <bit>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "halfscope/number/arithmetic.hpp"
#include "tests/catch.hpp"
#include "tests/vector_target.hpp"

namespace halfscope::sim::test_product {
namespace {

using Values = std::vector<float>;

Values integers(std::int64_t count, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-9, 9);
  Values values(static_cast<std::size_t>(count));
  for (float& x : values) x = static_cast<float>(draw(random));
  return values;
}

/// Shapes around the blocks of vectorised products, and some deeper than a cache.
constexpr backend::cpu::ProductShape kShapes[] = {
    {1, 1, 1},    {1, 7, 3},    {5, 1, 9},    {3, 4, 0},   {8, 8, 8},     {17, 16, 144},
    {64, 10, 33}, {33, 65, 27}, {2, 3, 5000}, {31, 6, 25}, {130, 24, 600}};

/// The sum over k of a(i, k) * b(k, j), exact.
template <class A, class B>
Values naive(const backend::cpu::ProductShape& s, const Values& before, const A& a, const B& b) {
  Values c = before;
  for (std::int64_t i = 0; i < s.rows; ++i) {
    for (std::int64_t j = 0; j < s.columns; ++j) {
      double sum = before[static_cast<std::size_t>(i * s.columns + j)];
      for (std::int64_t k = 0; k < s.depth; ++k) sum += double{a(i, k)} * double{b(k, j)};
      c[static_cast<std::size_t>(i * s.columns + j)] = static_cast<float>(sum);
    }
  }
  return c;
}

TEST_CASE("sim: products of small integers are exact with every instruction set") {
  std::mt19937 random(1);
  for (const backend::cpu::ProductKernels& kernels : backend::cpu::all_product_kernels()) {
    for (const backend::cpu::ProductShape& s : kShapes) {
      CAPTURE(kernels.name, s.rows, s.columns, s.depth);
      const Values a = integers(s.rows * s.depth, random),
                   b = integers(s.depth * s.columns, random);
      const Values zeros(static_cast<std::size_t>(s.rows * s.columns));
      const Values before = integers(s.rows * s.columns, random);
      const auto at = [](const Values& v, std::int64_t stride) {
        return [&v, stride](std::int64_t i, std::int64_t j) {
          return v[static_cast<std::size_t>(i * stride + j)];
        };
      };
      const auto turned = [](const Values& v, std::int64_t stride) {
        return [&v, stride](std::int64_t i, std::int64_t j) {
          return v[static_cast<std::size_t>(j * stride + i)];
        };
      };
      Values c(zeros.size(), 77.0f);
      kernels.plain(s, {a.data(), s.depth}, {b.data(), s.columns}, {c.data(), s.columns});
      CHECK(c == naive(s, zeros, at(a, s.depth), at(b, s.columns)));
      kernels.right_transposed(s, {a.data(), s.depth}, {b.data(), s.depth}, {c.data(), s.columns});
      CHECK(c == naive(s, zeros, at(a, s.depth), turned(b, s.depth)));
      c = before;
      kernels.add_left_transposed(s, {a.data(), s.rows}, {b.data(), s.columns},
                                  {c.data(), s.columns});
      CHECK(c == naive(s, before, turned(a, s.rows), at(b, s.columns)));
    }
  }
}

TEST_CASE("sim: a product writes its own columns alone") {
  const Values a(6 * 5, 1.0f), b(5 * 3, 2.0f);
  Values c(6 * 8, -1.0f);
  for (const backend::cpu::ProductKernels& kernels : backend::cpu::all_product_kernels()) {
    kernels.plain({6, 3, 5}, {a.data(), 5}, {b.data(), 3}, {c.data(), 8});
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(c[i] == (i % 8 < 3 ? 10.0f : -1.0f));
  }
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Of so many bits behind the point.
Values normals(std::int64_t count, int bits, std::mt19937& random) {
  std::normal_distribution<float> draw;
  Values values(static_cast<std::size_t>(count));
  for (float& x : values) x = std::ldexp(std::round(std::ldexp(draw(random), bits)), -bits);
  return values;
}

/// The three products as encodings, the result `offset` elements behind where memory begins.
std::vector<std::uint32_t> product_bits(const backend::cpu::ProductKernels& kernels,
                                        const backend::cpu::ProductShape& s, int operand_bits,
                                        std::int64_t offset) {
  std::mt19937 random(3);
  const Values a = normals(s.rows * s.depth, operand_bits, random);
  const Values b = normals(s.depth * s.columns, operand_bits, random);
  const Values before = normals(s.rows * s.columns, 30, random);
  std::vector<std::uint32_t> all;
  Values c(before.size() + static_cast<std::size_t>(offset));
  const backend::cpu::MatrixAt<float> at = {c.data() + offset, s.columns};
  const auto keep = [&] {
    for (std::size_t i = 0; i < before.size(); ++i) all.push_back(bits(at.data[i]));
  };
  kernels.plain(s, {a.data(), s.depth}, {b.data(), s.columns}, at);
  keep();
  kernels.right_transposed(s, {a.data(), s.depth}, {b.data(), s.depth}, at);
  keep();
  std::copy(before.begin(), before.end(), at.data);
  kernels.add_left_transposed(s, {a.data(), s.rows}, {b.data(), s.columns}, at);
  keep();
  return all;
}

TEST_CASE("sim: a product has the same bits with every instruction set, wherever it is written") {
  std::vector<backend::cpu::ProductShape> shapes(std::begin(kShapes), std::end(kShapes));
  for (std::int64_t i = 1; i < 6 * 6 * 13; ++i)
    shapes.push_back({i % 6 + 1, i / 6 % 6 + 1, i / 36});
  for (const backend::cpu::ProductShape& s : shapes) {
    for (const int operand_bits : {8, 30}) {  // products that are exact, and others
      const auto best =
          product_bits(backend::cpu::all_product_kernels().back(), s, operand_bits, 0);
      for (const backend::cpu::ProductKernels& kernels : backend::cpu::all_product_kernels()) {
        CAPTURE(kernels.name, s.rows, s.columns, s.depth, operand_bits);
        CHECK(product_bits(kernels, s, operand_bits, 1) == best);
      }
    }
  }
}

TEST_CASE("sim: a fused multiply-add in software rounds once") {
  // Ties of the sum in binary64, subnormal sums, signs, the ends of binary32.
  constexpr float kHard[] = {
      0.0f,          -0.0f,     1.0f,       -1.0f,           0x1.000002p0f,
      0x1.fffffep0f, 0x1p-24f,  -0x1p-24f,  0x1.000002p-24f, 0x1p-53f,
      0x1p-75f,      0x1p-126f, -0x1p-149f, 0x1.fffffep127f, 0x1p100f,
      INFINITY,      -INFINITY, NAN,        0x1.8p-30f,      -0x1.fffffep-1f};
  const backend::cpu::ProductKernels& any = backend::cpu::all_product_kernels().front();
  for (const float a : kHard) {
    for (const float b : kHard) {
      for (const float c : kHard) {
        const float wanted = std::fma(a, b, c);  // c * 1, then one multiply-add
        const Values rows = {c, a, c, a}, columns = {1.0f, 1.0f, b, b};
        Values found(4);
        any.plain({2, 2, 2}, {rows.data(), 2}, {columns.data(), 2}, {found.data(), 2});
        CAPTURE(a, b, c);
        if (std::isnan(wanted)) {
          CHECK(std::isnan(found[0]));
        } else {
          CHECK(bits(found[0]) == bits(wanted + 0.0f));
        }
      }
    }
  }
}

TEST_CASE("sim: products follow the vector target") {
  const OnTarget plain(vector_targets().back());
  CHECK(backend::cpu::product_kernels().name == backend::cpu::all_product_kernels().front().name);
}

/// Exponents of the values drawn, from and to; of 255 every encoding there is.
struct Range {
  int from, to;
};

Values encodings(Format f, const Range& range, std::size_t count, std::mt19937& random) {
  std::uniform_int_distribution<std::uint32_t> any(0, 0xFFFF);
  std::uniform_int_distribution<int> exponent(range.from, range.to);
  Values values(count);
  for (float& x : values) {
    const std::uint64_t word = any(random);
    if (range.to == 255) {
      x = std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, word).bits));
      continue;
    }
    const double fraction =
        1 + static_cast<double>(word & f.fraction_mask()) * std::ldexp(1.0, -f.fraction_bits());
    const auto wide = static_cast<float>(std::ldexp(fraction, exponent(random)));
    const std::uint64_t narrow =
        convert(f, kBinary32, bits((word & 0x8000) != 0 ? -wide : wide)).bits;
    x = std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, narrow).bits));
  }
  return values;
}

/// One element of C by the scalar emulator.
float in_sequence(Format f, const backend::cpu::ProductShape& s, const Values& a, const Values& b,
                  float c, std::size_t i, std::size_t j) {
  const auto depth = static_cast<std::size_t>(s.depth);
  const auto columns = static_cast<std::size_t>(s.columns);
  std::uint64_t sum = convert(f, kBinary32, bits(c)).bits;
  for (std::size_t k = 0; k < depth; ++k) {
    sum = fused_multiply_add(f, convert(f, kBinary32, bits(a[i * depth + k])).bits,
                             convert(f, kBinary32, bits(b[k * columns + j])).bits, sum)
              .bits;
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, sum).bits));
}

void check_sequence(Dtype dtype, const backend::cpu::ProductShape& s, const Range& range,
                    std::mt19937& random) {
  const Format f = format_of(dtype);
  const auto rows = static_cast<std::size_t>(s.rows), columns = static_cast<std::size_t>(s.columns);
  const Values a = encodings(f, range, rows * static_cast<std::size_t>(s.depth), random);
  const Values b = encodings(f, range, columns * static_cast<std::size_t>(s.depth), random);
  const Values before = encodings(f, range, rows * columns, random);
  Values c = before;
  backend::cpu::accumulate_narrow(dtype, s, {a.data(), s.depth, 1}, {b.data(), s.columns},
                                  {c.data(), s.columns});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const float wanted = in_sequence(f, s, a, b, before[i * columns + j], i, j);
      const float found = c[i * columns + j];
      wrong += std::isnan(wanted) ? !std::isnan(found) : bits(wanted) != bits(found);
    }
  }
  CAPTURE(name_of(dtype), s.rows, s.columns, s.depth, range.from, range.to);
  CHECK(wrong == 0);
}

TEST_CASE("sim: sums kept in 16 bits are the emulator's fused multiply-adds") {
  // Around subnormal sums, ones, overflow; products far below the sum; bfloat16's ends.
  constexpr Range kHalf[] = {{-24, -10}, {-12, -4}, {-3, 3}, {4, 9}, {-24, 15}, {0, 255}};
  constexpr Range kBrain[] = {{-3, 3},  {-20, 20},   {-133, -90}, {-60, -40},
                              {55, 66}, {-133, 127}, {0, 255}};
  constexpr backend::cpu::ProductShape kSums[] = {
      {1, 1, 1}, {4, 16, 30}, {5, 37, 23}, {9, 100, 3}, {3, 8, 200}, {2, 5, 40}, {6, 64, 1}};
  for (const std::string& target : targets()) {
    const OnTarget chosen(target);
    CAPTURE(target);
    std::mt19937 random(2);
    for (const backend::cpu::ProductShape& s : kSums) {
      for (const Range& range : kHalf) check_sequence(Dtype::f16, s, range, random);
      for (const Range& range : kBrain) check_sequence(Dtype::bf16, s, range, random);
    }
  }
}

TEST_CASE("sim: a bfloat16 product below binary32's range still has its sign") {
  for (const std::string& target : targets()) {
    const OnTarget chosen(target);
    const float tiny = 0x1p-80f, negative = -0x1p-80f;
    float sum = 0;
    backend::cpu::accumulate_narrow(Dtype::bf16, {1, 1, 1}, {&tiny, 0, 0}, {&negative, 1},
                                    {&sum, 1});
    CHECK(bits(sum) == 0x80000000u);  // rounded from below zero, IEEE 754-2019, 6.3
  }
}

TEST_CASE("sim: a long sum of ones stalls in 16 bits where the step becomes two") {
  const Values ones(5000, 1.0f);
  for (const auto& [dtype, last] : {std::pair{Dtype::f16, 2048.0f}, {Dtype::bf16, 256.0f}}) {
    float sum = 0;
    backend::cpu::accumulate_narrow(dtype, {1, 1, 5000}, {ones.data(), 0, 1}, {ones.data(), 1},
                                    {&sum, 1});
    CHECK(sum == last);
  }
}

}  // namespace
}  // namespace halfscope::sim::test_product
