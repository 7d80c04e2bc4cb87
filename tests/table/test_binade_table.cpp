// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/binade_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count.hpp"

namespace test_binade_table {

using namespace halfscope;

template <typename T>
TensorView view_of(const std::vector<T>& values, Dtype dtype) {
  return {dtype, reinterpret_cast<const std::byte*>(values.data()), values.size()};
}

TensorView view_of(const std::vector<float>& values) { return view_of(values, Dtype::f32); }

/// Log-normal magnitudes with both signs, and what breaks a fast pass: zeros, subnormals, exact
/// powers of two, the cut at 13/16, NaN and infinities.
std::vector<float> mixed(std::size_t n, unsigned seed, double rare_share) {
  std::mt19937 random(seed);
  std::normal_distribution<double> log2_magnitude(-18, 6);
  std::uniform_real_distribution<double> unit;
  const float odd_ones[] = {0.0f,          -0.0f,     0x1p-25f,    -0x1p-24f, 0x1.ap3f,
                            0x1.a00002p3f, 0x1p-149f, 0x1.8p-140f, INFINITY,  -INFINITY,
                            NAN,           65504.0f,  65520.0f};
  std::vector<float> values(n);
  for (float& x : values) {
    const bool rare = unit(random) < rare_share;
    const auto pick = static_cast<std::size_t>(unit(random) * std::size(odd_ones));
    const double sign = unit(random) < 0.5 ? -1 : 1;
    x = rare ? odd_ones[pick] : static_cast<float>(sign * std::exp2(log2_magnitude(random)));
  }
  return values;
}

TEST_CASE("the vector pass equals one element at a time", "[table]") {
  const double rare_share = GENERATE(0.0, 0.02, 0.5, 1.0);
  const std::size_t n = GENERATE(0u, 1u, 511u, 512u, 2049u, 100003u);
  CAPTURE(rare_share, n);
  const std::vector<float> values = mixed(n, 7, rare_share);
  CHECK(count_binades(view_of(values), 1) ==
        count_binades_scalar(view_of(values), standard_cuts()));
}

TEST_CASE("unaligned elements are counted the same", "[table]") {
  const std::vector<float> values = mixed(5000, 3, 0.1);
  std::vector<std::byte> bytes(values.size() * 4 + 1);
  std::memcpy(bytes.data() + 1, values.data(), values.size() * 4);
  CHECK(count_binades({Dtype::f32, bytes.data() + 1, values.size()}) ==
        count_binades(view_of(values)));
}

TEST_CASE("threads do not change a table", "[table]") {
  const std::vector<float> values = mixed((1u << 22) + 17, 11, 0.05);
  const BinadeTable one = count_binades(view_of(values), 1);
  CHECK(count_binades(view_of(values), 2) == one);
  CHECK(count_binades(view_of(values), 0) == one);
}

TEST_CASE("merging in any order and any split gives the same table", "[table]") {
  const std::vector<float> values = mixed(10000, 5, 0.1);
  const BinadeTable whole = count_binades(view_of(values));
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<std::size_t> ends{0, values.size()};
    for (int i = 0; i < 7; ++i) ends.push_back(random() % values.size());
    std::sort(ends.begin(), ends.end());
    std::vector<BinadeTable> parts;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      parts.push_back(count_binades(
          view_of(std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(ends[i]),
                                     values.begin() + static_cast<std::ptrdiff_t>(ends[i + 1])))));
    }
    std::shuffle(parts.begin(), parts.end(), random);
    BinadeTable merged;
    for (const BinadeTable& part : parts) merged.merge(part);
    REQUIRE(merged == whole);
  }
}

TEST_CASE("all 16-bit encodings, counted by encoding and one by one", "[table]") {
  const Dtype dtype = GENERATE(Dtype::f16, Dtype::bf16);
  std::vector<std::uint16_t> every(1 << 16);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::uint16_t>(i);
  const BinadeTable table = count_binades(view_of(every, dtype));
  CHECK(table == count_binades_scalar(view_of(every, dtype), standard_cuts()));
  CHECK(table.total() == every.size());
  CHECK(table.specials().zero == 2);
  CHECK(table.specials().negative_zero == 1);
  CHECK(table.infinities() == 2);
}

TEST_CASE("hand-counted values", "[table]") {
  const std::vector<float> values = {
      0.0f,     -0.0f,           NAN,      INFINITY,     -INFINITY,
      0x1p-25f, 0x1.000002p-25f, 0x1p-24f, 0x1.ffap-15f, 0x1.ffcp-15f,
      0x1p-14f, 65504.0f,        65519.0f, 65520.0f,     -1.0f};
  const BinadeTable table = count_binades(view_of(values));
  CHECK(table.specials() == SpecialCounts{2, 1, 1, 1, 1});
  const Classes c = classify(table, boundaries(kBinary16));
  CHECK(c.flushed_to_zero == Interval(1));  // 2^-25, the tie
  CHECK(c.subnormal == Interval(3));        // just above it, 2^-24, just below the normals
  CHECK(c.normal == Interval(5));           // rounds up to 2^-14, 2^-14, 65504, 65519, -1
  CHECK(c.overflow == Interval(1));         // 65520, the tie
}

TEST_CASE("a power-of-two scale shifts rows and nothing else", "[table]") {
  const std::vector<float> values = mixed(4000, 9, 0.0);
  const int k = GENERATE(-24, -1, 0, 10, 40);
  const BinadeTable table = count_binades(view_of(values));
  CHECK(classify(table.scaled_by_power_of_two(k), boundaries(kBinary16)) ==
        classify(table, boundaries(kBinary16, std::ldexp(1.0, k))));
  CHECK(table.scaled_by_power_of_two(k).scaled_by_power_of_two(-k) == table);
}

TEST_CASE("a boundary that is no cut gives an interval that holds the true count", "[table]") {
  const std::vector<float> values = mixed(20000, 13, 0.0);
  const double scale = GENERATE(1.5, 3.0, 1000.0, 0.1);
  const BinadeTable standard = count_binades(view_of(values));
  const Classes bounds = classify(standard, boundaries(kBinary16, scale));
  const Classes exact =
      classify(count_binades_scalar(view_of(values), cuts_for(kBinary16, scale, 1.0)),
               boundaries(kBinary16, scale));
  std::uint64_t flushed = 0;
  for (const float x : values) {
    flushed += (from_double(kBinary16, double{x} * scale).bits & 0x7FFF) == 0;  // exact product
  }
  CHECK(exact.flushed_to_zero == Interval(flushed));
  CHECK(bounds.flushed_to_zero.low <= flushed);
  CHECK(bounds.flushed_to_zero.high >= flushed);
  CHECK_FALSE(bounds.flushed_to_zero.exact());
}

TEST_CASE("tables remember whether a narrower format explains their values", "[table]") {
  std::vector<float> values = mixed(3000, 17, 0.0);
  CHECK_FALSE(count_binades(view_of(values)).fits(kBinary16));
  for (float& x : values) {
    const double half = to_double(kBinary16, from_float(kBinary16, x).bits);
    x = static_cast<float>(half / 65536.0);
  }
  const BinadeTable table = count_binades(view_of(values));
  CHECK(table.fits(kBinary16));
  CHECK(table == count_binades_scalar(view_of(values), standard_cuts()));
  values.push_back(0x1.002p0f);  // one more bit than binary16 has
  CHECK_FALSE(count_binades(view_of(values)).fits(kBinary16));
}

TEST_CASE("a table survives its encoding", "[table]") {
  const std::vector<float> values = mixed(3000, 19, 0.2);
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, values.size()}) {
    const std::vector<float> some(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n));
    const BinadeTable table = count_binades(view_of(some));
    CHECK(BinadeTable::decode(table.encode()) == table);
  }
}

TEST_CASE("a damaged encoding is refused, whatever the damage", "[table]") {
  const std::vector<std::int64_t> words = count_binades(view_of(mixed(300, 23, 0.2))).encode();
  for (std::size_t n = 0; n < words.size(); ++n) {
    CAPTURE(n);
    CHECK_THROWS_AS(BinadeTable::decode(std::span(words).first(n)), std::invalid_argument);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::int64_t wrong : {std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
      std::vector<std::int64_t> damaged = words;
      damaged[i] = wrong;
      try {
        const BinadeTable table = BinadeTable::decode(damaged);
        CHECK(table.encode() == damaged);  // it made sense after all
      } catch (const std::invalid_argument&) {
      }
    }
  }
}

TEST_CASE("an encoding cannot ask for memory that its words do not pay for", "[table]") {
  std::vector<std::int64_t> words{1, 100000};
  for (int i = 1; i <= 100000; ++i) words.push_back(i);
  words.insert(words.end(), 12, 0);
  CHECK_THROWS_WITH(BinadeTable::decode(words), Catch::Contains("number of cuts is 100000"));
}

TEST_CASE("tables of different cuts merge to the common ones", "[table]") {
  const std::vector<float> values = mixed(2000, 29, 0.1);
  const std::vector<std::uint64_t> few = {standard_cuts()[0], standard_cuts()[3]};
  BinadeTable merged = count_binades(view_of(values));
  merged.merge(count_binades_scalar(view_of(values), few));
  CHECK(merged.cuts() == few);
  BinadeTable twice = count_binades_scalar(view_of(values), few);
  twice.merge(twice);
  CHECK(merged == twice);
}

TEST_CASE("Tables of more than 2^63 values together do not add", "[table]") {
  const auto table_of = [](std::uint64_t finite, std::uint64_t zeros) {
    BinadeTable table;
    table.add({0, 0}, false, finite);
    SpecialCounts specials;
    specials.zero = zeros;
    table.add_specials(specials);
    return table;
  };
  const std::uint64_t half = std::uint64_t{1} << 62;
  BinadeTable sum = table_of(half, 0);
  sum.merge(table_of(0, half - 1));
  CHECK(sum.total() == 2 * half - 1);
  const BinadeTable before = sum;
  CHECK_THROWS_AS(sum.merge(table_of(1, 0)), std::overflow_error);
  CHECK_THROWS_AS(sum.merge(table_of(0, 1)), std::overflow_error);
  CHECK(sum == before);
}

}  // namespace test_binade_table
