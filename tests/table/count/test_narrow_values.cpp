// SPDX-License-Identifier: Apache-2.0
// Binary32 values that are numbers of narrower formats. The judge rounds each value to the format
// by the scalar conversion, and asks if the result is the value.
#include "halfscope/table/count/narrow_values.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "tests/vector_target.hpp"

namespace test_narrow_values {

using namespace halfscope;

NarrowCounts judged(const std::vector<float>& values) {
  NarrowCounts found{.total = values.size()};
  for (const float value : values) {
    found.zero += value == 0 ? 1 : 0;
    found.constant = found.constant && std::memcmp(&value, values.data(), 4) == 0;
    if (value == 0 || !std::isfinite(value)) continue;
    ++found.finite_nonzero;
    for (std::size_t i = 0; i < kNarrowFormats.size(); ++i) {
      const Format f = kNarrowFormats[i];
      const auto bits = from_double(f, value).bits;
      const bool number = (bits & f.magnitude_mask()) <= f.largest_finite();
      found.exact[i] += number && to_double(f, bits) == value ? 1 : 0;
    }
  }
  return found;
}

void require_judged(const std::vector<float>& values) {
  const NarrowCounts found = count_narrow_values(view_of(values)), right = judged(values);
  CHECK(found.total == right.total);
  CHECK(found.zero == right.zero);
  CHECK(found.finite_nonzero == right.finite_nonzero);
  CHECK(found.exact == right.exact);
  CHECK(found.constant == right.constant);
}

/// All encodings of a format, and their neighbours in binary32.
std::vector<float> around(Format f) {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits <= f.magnitude_mask(); ++bits) {
    const auto value = static_cast<float>(to_double(f, bits));
    for (const float v : {value, -value, std::nextafter(value, 0.f), std::nextafter(value, 1e38f),
                          value / 2, value * 2, value / 4}) {
      all.push_back(v);
    }
  }
  return all;
}

TEST_CASE("every number of a narrow format is counted, and none beside it", "[oracle]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Format f : kNarrowFormats) require_judged(around(f));
  }
}

TEST_CASE("random bits, of any count and any alignment", "[oracle]") {
  std::mt19937 random(5);
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (std::size_t n = 0; n < 100; ++n) {
      std::vector<float> values(n);
      for (float& v : values) {
        const auto kept = 0xffffffffu << (random() % 25);
        v = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & kept);
      }
      require_judged(values);
      std::vector<std::byte> shifted(4 * n + 1);
      if (n > 0) std::memcpy(shifted.data() + 1, values.data(), 4 * n);
      const NarrowCounts found = count_narrow_values({Dtype::f32, shifted.data() + 1, n});
      CHECK(found.exact == judged(values).exact);
    }
  }
}

TEST_CASE("constant tensors, also in the last values of a vector", "[table]") {
  for (const std::size_t n : {1, 7, 8, 64, 67}) {
    std::vector<float> values(n, 0.3f);
    CHECK(count_narrow_values(view_of(values)).constant);
    if (n == 1) continue;
    values.back() = 0.25f;
    CHECK_FALSE(count_narrow_values(view_of(values)).constant);
  }
  const std::vector<float> special = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1.f};
  require_judged(special);
  const std::vector<double> wide(3);
  CHECK_THROWS_AS(count_narrow_values(view_of(wide)), std::invalid_argument);
}

}  // namespace test_narrow_values
