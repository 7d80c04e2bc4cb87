// SPDX-License-Identifier: Apache-2.0
// The sums beside the Tensor Core's, against exact rationals and the definition written anew.
#include "halfscope/tensor_core/reference.hpp"

#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cfenv>
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/tensor_core/exact_sum.hpp"
#include "vector_target.hpp"

namespace test_reference {

using namespace halfscope;
using namespace halfscope::tensor_core;
using boost::multiprecision::cpp_int;

constexpr int kLeast = -298;

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// A finite number in units of 2^exponent, by the C library.
cpp_int in_units(float x, int exponent) {
  int e = 0;
  const auto integer = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &e), 24));
  const cpp_int size = integer < 0 ? -integer : integer;
  const int shift = e - 24 - exponent;  // below 0 of subnormal numbers: their last bits are zeros
  const cpp_int value = shift < 0 ? cpp_int(size >> -shift) : cpp_int(size << shift);
  return integer < 0 ? cpp_int(-value) : value;
}

/// Nearest, ties to even, among all encodings by bisection; an exact zero is +0.
std::uint32_t nearest(const cpp_int& value) {
  const cpp_int size = abs(value);
  const auto value_of = [](std::uint32_t code) {
    if (code == 0x7F800000) return cpp_int(cpp_int(1) << (128 - kLeast));
    return in_units(std::bit_cast<float>(code), kLeast);
  };
  std::uint32_t low = 0, high = 0x7F800000;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (value_of(middle) <= size ? low : high) = middle;
  }
  const cpp_int twice = 2 * size, middle = value_of(low) + value_of(high);
  if (size >= value_of(high) || twice > middle || (twice == middle && low % 2 == 1)) low = high;
  return low | (value < 0 ? 0x80000000 : 0);
}

/// Random numbers: exponent fields from `first`, `count` of them.
class Floats {
 public:
  explicit Floats(std::uint64_t seed) : seed_(seed) {}
  float next(std::uint32_t first, std::uint32_t count) {
    const std::uint32_t w = random_word(seed_, index_++), x = random_word(seed_, index_++);
    return std::bit_cast<float>((w & 0x807FFFFF) | (first + x % count) << 23);
  }
  float half() {
    const std::uint32_t w = random_word(seed_, index_++);
    const std::uint32_t code = (w & 0x83FF) | (8 + (w >> 16) % 12) << 10;
    return static_cast<float>(to_double(kBinary16, code));
  }

 private:
  std::uint64_t seed_, index_ = 0;
};

struct Product {
  explicit Product(const GemmShape& s) : shape(s) {
    Floats random(4);
    for (std::int64_t i = 0; i < s.m * s.k; ++i) a.push_back(random.half());
    for (std::int64_t i = 0; i < s.k * s.n; ++i) b.push_back(random.half());
    for (std::int64_t i = 0; i < s.m * s.n; ++i) c.push_back(random.half());
  }
  std::vector<float> by(ReferenceSum sum, int threads = 1) const {
    std::vector<float> d = c;
    const auto [m, n, k] = shape;
    reference_gemm(sum, shape, {a.data(), k, 1}, {b.data(), n, 1}, {d.data(), n, 1}, threads);
    return d;
  }
  template <class Sum>
  int differences(ReferenceSum by_library, Sum expected) const {
    const std::vector<float> found = by(by_library);
    int out = 0;
    for (std::int64_t i = 0; i < shape.m; ++i) {
      for (std::int64_t j = 0; j < shape.n; ++j) {
        std::vector<float> x, y;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          x.push_back(a[static_cast<std::size_t>(i * shape.k + k)]);
          y.push_back(b[static_cast<std::size_t>(k * shape.n + j)]);
        }
        const auto at = static_cast<std::size_t>(i * shape.n + j);
        out += bits_of(found[at]) != bits_of(expected(x, y, c[at]));
      }
    }
    return out;
  }

  GemmShape shape;
  std::vector<float> a, b, c;
};

using Values = std::vector<float>;

/// Halves of which the first is not the shorter.
float pairwise(const Values& products, std::size_t first, std::size_t last) {
  if (last - first == 1) return products[first];
  const std::size_t middle = first + (last - first + 1) / 2;
  return pairwise(products, first, middle) + pairwise(products, middle, last);
}

TEST_CASE("an exact sum is rounded once", "[tensor_core][oracle]") {
  Floats random(11);
  for (int i = 0; i < 3000; ++i) {
    const std::uint32_t first = i % 5 == 0 ? 0 : random_word(3, i) % 250;
    const std::uint32_t count = i % 3 == 0 ? 255 - first : 1 + (255 - first) % 5;
    ExactSum sum;
    cpp_int expected = 0;
    for (int k = 0; k < i % 40; ++k) {
      const float a = random.next(first, count), b = random.next(first, count);
      sum.add_product(a, b);
      expected += in_units(a, -149) * in_units(b, -149);
      if (k % 4 == 1) {  // what cancels leaves the smaller ones
        sum.add_product(-a, b);
        expected -= in_units(a, -149) * in_units(b, -149);
      }
    }
    const float c = random.next(0, 255);
    if (i % 2 == 0) {
      sum.add(c);
      expected += in_units(c, kLeast);
    }
    CAPTURE(i);
    REQUIRE(sum.rounded(kBinary32).bits == nearest(expected));
  }
}

TEST_CASE("ties, carries and special values of an exact sum", "[tensor_core]") {
  const auto sum_of = [](const Values& values) {
    ExactSum sum;
    for (const float x : values) sum.add(x);
    return static_cast<std::uint32_t>(sum.rounded(kBinary32).bits);
  };
  const float inf = INFINITY;
  CHECK(sum_of({}) == 0);
  CHECK(sum_of({-0.0f, -0.0f}) == 0);
  CHECK(sum_of({1, 0x1p-24f}) == 0x3F800000);
  CHECK(sum_of({1, 0x1p-24f, 0x1p-149f}) == 0x3F800001);
  CHECK(sum_of({-1, -0x1p-24f, -0x1p-149f}) == 0xBF800001);
  CHECK(sum_of({1, 0x1p-24f, -0x1p-149f}) == 0x3F800000);
  CHECK(sum_of({0x1.FFFFFEp127f, 0x1p127f, -0x1p127f, 0x1p-149f}) == 0x7F7FFFFF);
  CHECK(sum_of({0x1.FFFFFEp127f, 0x1p103f}) == 0x7F800000);
  CHECK(sum_of({0x1p127f, 1, -0x1p127f}) == 0x3F800000);
  CHECK(sum_of({inf, 1}) == 0x7F800000);
  CHECK(sum_of({-inf, -inf}) == 0xFF800000);
  CHECK(sum_of({inf, -inf}) == 0x7FFFFFFF);
  CHECK(sum_of({NAN, 1}) == 0x7FFFFFFF);
  ExactSum sum;
  sum.add_product(inf, -0.0f);
  CHECK(sum.rounded(kBinary32).bits == 0x7FFFFFFF);
  CHECK(sum.rounded(kBinary16).bits == 0x7FFF);
}

TEST_CASE("products by other sums", "[tensor_core]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const GemmShape& shape : {GemmShape{4, 9, 1}, {3, 37, 50}, {2, 1, 129}, {5, 4, 0}}) {
      const Product product(shape);
      CAPTURE(target, shape.m, shape.n, shape.k);
      CHECK(product.differences(ReferenceSum::sequential32,
                                [](const Values& x, const Values& y, float sum) {
                                  for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
                                  return sum;
                                }) == 0);
      CHECK(product.differences(
                ReferenceSum::pairwise32, [](const Values& x, const Values& y, float c) {
                  Values products;
                  for (std::size_t k = 0; k < x.size(); ++k) products.push_back(x[k] * y[k]);
                  return products.empty() ? c : c + pairwise(products, 0, products.size());
                }) == 0);
      CHECK(product.differences(
                ReferenceSum::sequential16, [](const Values& x, const Values& y, float c) {
                  std::uint64_t sum = from_float(kBinary16, c).bits;
                  for (std::size_t k = 0; k < x.size(); ++k) {
                    sum = fused_multiply_add(kBinary16, from_float(kBinary16, x[k]).bits,
                                             from_float(kBinary16, y[k]).bits, sum)
                              .bits;
                  }
                  return static_cast<float>(to_double(kBinary16, sum));
                }) == 0);
      CHECK(product.differences(ReferenceSum::exact, [](const Values& x, const Values& y, float c) {
        cpp_int sum = in_units(c, kLeast);
        for (std::size_t k = 0; k < x.size(); ++k) {
          sum += in_units(x[k], -149) * in_units(y[k], -149);
        }
        return std::bit_cast<float>(nearest(sum));
      }) == 0);
    }
  }
}

TEST_CASE("other sums with any threads, matrices and directions", "[tensor_core]") {
  const Product product({40, 30, 20});
  const auto [m, n, k] = product.shape;
  for (const ReferenceSum sum : {ReferenceSum::sequential32, ReferenceSum::pairwise32,
                                 ReferenceSum::sequential16, ReferenceSum::exact}) {
    const std::vector<float> expected = product.by(sum);
    CHECK(product.by(sum, 3) == expected);
    std::fesetround(FE_UPWARD);
    const std::vector<float> upward = product.by(sum);
    std::fesetround(FE_TONEAREST);
    CHECK(upward == expected);
    // B = A^T, read in place.
    std::vector<float> d(static_cast<std::size_t>(m * m)), copy(product.a.size()), e = d;
    for (std::size_t i = 0; i < copy.size(); ++i) copy[i % 20 * 40 + i / 20] = product.a[i];
    reference_gemm(sum, {m, m, k}, {product.a.data(), k, 1}, {product.a.data(), 1, k},
                   {d.data(), m, 1});
    reference_gemm(sum, {m, m, k}, {product.a.data(), k, 1}, {copy.data(), m, 1}, {e.data(), 1, m});
    for (std::size_t i = 0; i < d.size(); ++i) REQUIRE(d[i] == e[i % 40 * 40 + i / 40]);
  }
  CHECK_THROWS_AS(reference_gemm(ReferenceSum::exact, {-1, 1, 1}, {}, {}, {}),
                  std::invalid_argument);
}

}  // namespace test_reference
