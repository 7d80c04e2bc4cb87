// SPDX-License-Identifier: Apache-2.0
// The judge rounds in binary64 with std::nearbyint, and compares values and signs.
#include "halfscope/optimizer/changed.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "catch.hpp"
#include "tests/vector_target.hpp"

namespace halfscope::test_changed {

struct Row {
  Dtype dtype;
  int precision, emin;
  double largest;
  bool nan_above;  ///< too large values become NaN, not infinity
};
constexpr Row kRows[] = {{Dtype::bf16, 8, -126, 0x1.FEp127, false},
                         {Dtype::f16, 11, -14, 65504, false},
                         {Dtype::f8_e4m3, 4, -6, 448, true},
                         {Dtype::f8_e5m2, 3, -14, 57344, false}};

double rounded(const Row& row, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return row.nan_above ? std::nan("") : x;
  if (x == 0) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), row.emin) - (row.precision - 1));
  const double near = std::nearbyint(x / step) * step;
  if (std::abs(near) <= row.largest) return std::copysign(near, x);
  return row.nan_above ? std::nan("") : std::copysign(INFINITY, x);
}

bool differ(const Row& row, double a, double b) {
  const double x = rounded(row, a), y = rounded(row, b);
  if (std::isnan(x) || std::isnan(y)) {
    // E4M3 keeps the sign of a number that is too large.
    if (std::isnan(x) != std::isnan(y)) return true;
    return row.nan_above &&
           std::signbit(std::isnan(a) ? 0.0 : a) != std::signbit(std::isnan(b) ? 0.0 : b);
  }
  return x != y || std::signbit(x) != std::signbit(y);
}

/// Values around every boundary, and special ones.
std::vector<float> values(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::vector<float> out(n);
  for (float& x : out) {
    std::uint32_t bits = random();
    if (bits % 3 == 0) bits = (random() & 0xFFFF0000u) + 0x8000u + random() % 3 - 1;
    if (bits % 7 == 0) bits = (random() % 2 << 31) + (0x30000000u + random() % 0x20000000u);
    if (bits % 11 == 0) bits &= 0x80000000u;
    x = std::bit_cast<float>(bits);
  }
  return out;
}

TEST_CASE("changed copies equal the judge's", "[oracle]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Row& row : kRows) {
      for (const std::size_t n : {0, 1, 7, 64, 65, 5000}) {
        std::vector<float> a = values(n, 1), b = a;
        const std::vector<float> other = values(n, 2);
        for (std::size_t i = 0; i < n; ++i) {
          if (i % 2 == 0) b[i] = other[i];
          if (i % 4 == 1) b[i] = std::nextafter(a[i], 0.0f);
        }
        const std::size_t first = n > 64 ? 3 : 0, count = n - first;
        std::vector<std::uint8_t> bits((count + 7) / 8, 0xFF);
        const auto found =
            optimizer::changed(view_of(std::span<const float>(a)),
                               view_of(std::span<const float>(b)), row.dtype, first, count, bits);
        std::uint64_t wanted = 0;
        std::size_t bad = count;
        for (std::size_t i = 0; i < count; ++i) {
          const bool differs = differ(row, a[first + i], b[first + i]);
          wanted += differs ? 1 : 0;
          if (((bits[i / 8] >> i % 8 & 1) != 0) != differs) bad = std::min(bad, i);
        }
        INFO(target << " " << name_of(row.dtype) << " " << n << " " << bad);
        REQUIRE(bad == count);
        REQUIRE(found == wanted);
        if (count % 8 != 0) REQUIRE(bits.back() >> count % 8 == 0);
      }
    }
  }
}

TEST_CASE("binary64 and narrow tensors", "[oracle]") {
  const double a[] = {1.0, 1.0, -0.0, 1.0, NAN},
               b[] = {1.0 + 0x1p-9, 1.0 + 0x1.8p-8, 0.0, 2.0, -NAN};
  std::uint8_t bits[1];
  CHECK(optimizer::changed(view_of(std::span<const double>(a)), view_of(std::span<const double>(b)),
                           Dtype::bf16, 0, 5, bits) == 3);
  CHECK(bits[0] == 0b01110);
  // Bytes decide in a tensor that is narrow itself, also of NaNs and zeros.
  const std::uint16_t x[] = {0x7FC0, 0x0000, 0x3F80}, y[] = {0x7FC1, 0x8000, 0x3F80};
  const TensorView of_x{Dtype::bf16, reinterpret_cast<const std::byte*>(x), 3};
  const TensorView of_y{Dtype::bf16, reinterpret_cast<const std::byte*>(y), 3};
  CHECK(optimizer::changed(of_x, of_y, Dtype::f16, 0, 3, bits) == 2);
  CHECK(bits[0] == 0b011);
}

}  // namespace halfscope::test_changed
