// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/moment_sums.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "tests/vector_target.hpp"

namespace test_moment_sums {

using namespace halfscope;

TEST_CASE("moments of a tensor in parts are those of the whole, bit by bit", "[table]") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0.1, 3);
  std::vector<double> wide;
  for (int i = 0; i < 20'000; ++i) wide.push_back(normal(random));
  wide[17] = std::numeric_limits<double>::infinity();
  wide[4096] = std::nan("");
  const std::vector<float> values(wide.begin(), wide.end());
  const auto parts_of = [](const TensorView& view, std::size_t size) {
    MomentSums sums;
    for (std::size_t first = 0; first < view.count; first += size) {
      const TensorView before{view.dtype, nullptr, first};
      sums.add({view.dtype, view.data + before.bytes(), std::min(size, view.count - first)});
    }
    return sums.value();
  };
  for (const TensorView& view : {view_of(values), view_of(wide)}) {
    const Moments whole = moments(view);
    CHECK(std::abs(whole.mean - 0.1) < 0.2);
    for (const std::size_t blocks : {1, 2, 3, 100}) {
      const Moments found = parts_of(view, blocks * MomentSums::kBlock);
      CHECK(found.mean == whole.mean);
      CHECK(found.sum_squares == whole.sum_squares);
    }
  }
  CHECK(MomentSums().value().mean == 0);
}

TEST_CASE("moments of every dtype and length are those of the judge, on every target", "[table]") {
  const Dtype dtype = GENERATE(from_range(kAllDtypes));
  const Format format = format_of(dtype);
  const auto width = static_cast<std::size_t>(format.width / 8);
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0.25, 2);
  std::vector<std::byte> bytes;
  std::vector<double> values;
  for (int i = 0; i < 9000; ++i) {  // more than two blocks
    const double x = i % 1013 == 0 ? std::numeric_limits<double>::quiet_NaN() : normal(random);
    const std::uint64_t bits = from_double(format, x).bits;
    values.push_back(to_double(format, bits));
    const auto* const first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first, first + width);
  }
  const auto judged = [&](std::size_t count) {
    long double sum = 0, squares = 0;
    std::uint64_t finite = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      squares += static_cast<long double>(values[i]) * values[i];
      ++finite;
    }
    return std::pair(finite == 0 ? 0 : sum / static_cast<long double>(finite), squares);
  };
  for (const std::size_t count : {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 9000}) {
    const auto [mean, squares] = judged(count);
    const Moments first = moments({dtype, bytes.data(), count});
    CHECK(std::abs(first.mean - static_cast<double>(mean)) <= 1e-12);
    CHECK(std::abs(first.sum_squares - static_cast<double>(squares)) <=
          1e-12 * static_cast<double>(squares));
    for (const std::string& target : targets()) {
      const OnTarget on(target);
      const Moments found = moments({dtype, bytes.data(), count});
      CAPTURE(target, count);
      CHECK(found.mean == first.mean);
      CHECK(found.sum_squares == first.sum_squares);
    }
  }
}

TEST_CASE("one pass gives the table and the moments of two, on every target", "[table]") {
  const Dtype dtype = GENERATE(from_range(kAllDtypes));
  const Format format = format_of(dtype);
  const auto width = static_cast<std::size_t>(format.width / 8);
  constexpr std::size_t kLarge = 3 * 16384 + 77;  // what is added up together, three times and more
  std::mt19937 random(11);
  std::normal_distribution<double> normal(0.25, 2);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < kLarge; ++i) {
    const double x = i % 1013 == 0 ? std::numeric_limits<double>::infinity() : normal(random);
    const std::uint64_t bits = from_double(format, x).bits;
    const auto* const first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first, first + width);
  }
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const std::size_t count :
         std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 384, 4096, 16384, 16448, kLarge}) {
      CAPTURE(target, count);
      const TensorView view{dtype, bytes.data(), count};
      const auto [table, found] = measure(view);
      const Moments want = moments(view);
      CHECK(table == count_binades(view, 1));
      CHECK(found.mean == want.mean);
      CHECK(found.sum_squares == want.sum_squares);
    }
  }
}

TEST_CASE("moments of every encoding of 16 bits, on every target", "[table]") {
  const Dtype dtype = GENERATE(Dtype::f16, Dtype::bf16);
  std::vector<std::uint16_t> all;
  for (unsigned bits = 0; bits < 0x10000; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    CAPTURE(target);
    for (const std::uint16_t bits : all) {
      const double x = to_double(format_of(dtype), bits);
      // Eight of them, since fewer are added one by one.
      const std::vector<std::uint16_t> eight(8, bits);
      const Moments found = moments({dtype, std::as_bytes(std::span(eight)).data(), 8});
      REQUIRE(found.mean == (std::isfinite(x) ? x : 0));
      REQUIRE(found.sum_squares == (std::isfinite(x) ? 8 * x * x : 0));
    }
  }
}

}  // namespace test_moment_sums
