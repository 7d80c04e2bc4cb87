// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/largest_magnitude.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "tests/vector_target.hpp"

namespace test_largest_magnitude {

using namespace halfscope;

/// The judge: element by element, in binary64. NaN is larger than all.
double judged(const TensorView& tensor) {
  const Format format = format_of(tensor.dtype);
  const auto width = static_cast<std::size_t>(format.width / 8);
  double most = 0;
  for (std::size_t i = 0; i < tensor.count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, tensor.data + i * width, width);
    const double magnitude = std::abs(to_double(format, bits));
    if (std::isnan(magnitude)) return magnitude;
    most = std::max(most, magnitude);
  }
  return most;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Random bits: of every kind, NaN among them where the format has many.
std::vector<std::byte> random_bytes(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  return all;
}

TEST_CASE("largest magnitude: every length, of random bits, at every alignment") {
  const Dtype dtype = GENERATE(from_range(kAllDtypes));
  const auto width = static_cast<std::size_t>(format_of(dtype).width / 8);
  const std::vector<std::byte> bytes = random_bytes(301 * width + 8, 1);
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (std::size_t count = 0; count <= 300; ++count) {
      const TensorView tensor{dtype, bytes.data() + count % 8, count};
      REQUIRE(same(largest_magnitude(tensor), judged(tensor)));
    }
  }
}

TEST_CASE("largest magnitude: found in every place, of either sign, also infinity and NaN") {
  constexpr std::size_t kCount = 301;  // some blocks of vectors, and a tail
  const float extreme = GENERATE(2.0f, -2.0f, 0x1.000002p-1f, -INFINITY, INFINITY,
                                 std::numeric_limits<float>::quiet_NaN());
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (std::size_t place = 0; place < kCount; ++place) {
      std::vector<float> values(kCount, -0.5f);
      values[place] = extreme;
      REQUIRE(same(largest_magnitude(view_of(values)), std::abs(double{extreme})));
    }
  }
}

TEST_CASE("largest magnitude: subnormals and zeros of either sign") {
  CHECK(largest_magnitude(view_of(std::vector<float>{})) == 0);
  CHECK(largest_magnitude(view_of(std::vector<float>{-0.0f, 0.0f})) == 0);
  CHECK(largest_magnitude(view_of(std::vector<float>{-0x1p-149f, 0.0f})) == 0x1p-149);
  CHECK(largest_magnitude(view_of(std::vector<double>{0x1p-1074, -0x1p-1073})) == 0x1p-1073);
}

}  // namespace test_largest_magnitude
