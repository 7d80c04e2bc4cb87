// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/magnitude_sums.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "oracle.hpp"

namespace test_magnitude_sums {

using namespace halfscope;
using oracle::Rational;

Rational exactly(double x) {
  int exponent = 0;
  const double half = std::frexp(x, &exponent);
  return Rational(static_cast<std::int64_t>(std::ldexp(half, 53))) *
         oracle::power_of_two(exponent - 53);
}

Rational exactly(const Magnitude& m) {
  return oracle::rational({kFractionUnit + m.fraction, m.exponent - 52});
}

/// The judge: what lies below a magnitude, by adding rationals one by one.
struct Judge {
  Rational l1, l2, all1, all2;

  Judge(const std::vector<double>& values, const Magnitude& m, bool lowest_of_binade = false) {
    Magnitude limit = m;
    if (lowest_of_binade) limit.fraction = 0;
    for (const double x : values) {
      if (!std::isfinite(x)) continue;
      const Rational a = abs(exactly(x));
      all1 += a;
      all2 += a * a;
      if (a >= exactly(limit)) continue;
      l1 += a;
      l2 += a * a;
    }
  }
};

/// Whether x is the double nearest to r.
bool is_nearest(double x, const Rational& r) {
  const Rational error = abs(exactly(x) - r);
  const Rational up = abs(exactly(std::nextafter(x, 2.0)) - r);
  const Rational down = x == 0 ? up : Rational(abs(exactly(std::nextafter(x, -1.0)) - r));
  return error <= up && error <= down;
}

void check_share(const Bounds& found, const Rational& part, const Rational& whole) {
  REQUIRE(found.low == found.high);
  REQUIRE(is_nearest(found.low, whole == 0 ? Rational(0) : Rational(part / whole)));
}

/// Log-normal magnitudes over many binades, and the odd ones out.
std::vector<float> values_of(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> log2(-12, 9);
  std::vector<float> values;
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = (random() & 1) != 0 ? 1.0 : -1.0;
    values.push_back(static_cast<float>(sign * std::exp2(log2(random))));
  }
  for (const float x : {0.0f, -0.0f, 0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 0x1.fffffep127f,
                        INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN(), 0x1p-25f,
                        0x1.000002p-25f, 0x1.ffcp-15f, 0x1.ffap-15f, 65519.0f, 65520.0f, 464.0f}) {
    values.push_back(x);
  }
  return values;
}

std::vector<double> widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<Magnitude> boundaries_of_all() {
  std::vector<Magnitude> all;
  for (const char* name : {"binary16", "bfloat16", "e4m3", "e5m2"}) {
    const Boundaries b = boundaries(find_format(name)->format);
    for (const int k : {-10, 0, 7, 24}) {
      const Boundaries shifted = before_scaling(b, k);
      all.insert(all.end(), {shifted.nonzero, shifted.normal, shifted.overflow});
    }
  }
  return all;
}

TEST_CASE("magnitude sums: shares are exact rationals, rounded once", "[oracle]") {
  const std::vector<float> values = values_of(3000, GENERATE(1, 2));
  MagnitudeSums sums;
  sums.add(view_of(values));
  for (const Magnitude& m : boundaries_of_all()) {
    const Judge judge(widen(values), m);
    const MassShare found = sums.share_below(m);
    CAPTURE(m.exponent, m.fraction);
    check_share(found.l1, judge.l1, judge.all1);
    check_share(found.l2, judge.l2, judge.all2);
  }
}

TEST_CASE("magnitude sums: without the outliers every place of the ratio counts", "[oracle]") {
  std::vector<float> values;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    values.push_back(std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f,
                                -20 - static_cast<int>(random() % 10)));
  }
  MagnitudeSums sums;
  sums.add(view_of(values));
  for (const Magnitude& m : boundaries_of_all()) {
    const Judge judge(widen(values), m);
    check_share(sums.share_below(m).l1, judge.l1, judge.all1);
    check_share(sums.share_below(m).l2, judge.l2, judge.all2);
  }
}

TEST_CASE("magnitude sums: every source type", "[oracle]") {
  std::vector<double> wide;
  std::mt19937_64 random(3);
  const bool small = GENERATE(true, false);  // fewer elements than the dense ways want
  const std::size_t n = small ? 60 : 20000;
  SECTION("binary64, with its subnormals and its largest") {
    for (std::size_t i = 0; i < n / 10; ++i) {
      wide.push_back(std::bit_cast<double>(random()));
    }
    wide.insert(wide.end(), {0x1p-1074, 0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023});
    MagnitudeSums sums;
    sums.add(view_of(std::span<const double>(wide)));
    for (const Magnitude m : {Magnitude{1000, 0}, Magnitude{1020, kFractionUnit * 3 / 4}}) {
      const Judge judge(wide, m);
      check_share(sums.share_below(m).l1, judge.l1, judge.all1);
      check_share(sums.share_below(m).l2, judge.l2, judge.all2);
    }
  }
  SECTION("encodings of 16 and 8 bits") {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f8_e4m3, Dtype::f8_e5m2}) {
      const Format f = format_of(dtype);
      std::vector<std::byte> bytes;
      wide.clear();
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t bits = random() & (f.magnitude_mask() | f.sign_mask());
        wide.push_back(to_double(f, bits));
        for (int b = 0; b < f.width; b += 8) bytes.push_back(static_cast<std::byte>(bits >> b));
      }
      MagnitudeSums sums;
      sums.add({dtype, bytes.data(), n});
      const Magnitude m = boundaries(kBinary16).normal;
      const Judge judge(wide, m);
      check_share(sums.share_below(m).l1, judge.l1, judge.all1);
      check_share(sums.share_below(m).l2, judge.l2, judge.all2);
    }
  }
}

TEST_CASE("magnitude sums: any split, order and number of threads give the same bits", "[table]") {
  const std::vector<float> values = values_of(2'500'000, 11);
  const TensorView all = view_of(values);
  MagnitudeSums one;
  one.add(all, 1);
  for (const int threads : {0, 2, 3}) {
    MagnitudeSums many;
    many.add(all, threads);
    REQUIRE(many == one);
  }
  MagnitudeSums first, second, scalar;
  first.add({all.dtype, all.data, 1234567}, 1);
  second.add({all.dtype, all.data + 4 * 1234567, all.count - 1234567}, 1);
  second.merge(first);
  REQUIRE(second == one);
  for (std::size_t at = 0; at < all.count; at += 500) {  // below the size of the dense way
    scalar.add({all.dtype, all.data + 4 * at, std::min<std::size_t>(500, all.count - at)}, 1);
  }
  REQUIRE(scalar == one);
}

TEST_CASE("magnitude sums: carries run through every limb", "[table]") {
  MagnitudeSums sums;
  const Magnitude most{3, kFractionUnit - 1};
  const std::uint64_t times = ~std::uint64_t{0};
  sums.add(most, times);
  sums.add({-40, 5}, times);
  const Rational n(times), big = exactly(most), small = exactly(Magnitude{-40, 5});
  check_share(sums.share_below({0, 0}).l1, n * small, n * small + n * big);
  check_share(sums.share_below({0, 0}).l2, n * small * small, n * small * small + n * big * big);
  MagnitudeSums added;  // the same by halves
  added.add(most, times / 2);
  added.add({-40, 5}, times / 2 + 1);
  MagnitudeSums rest;
  rest.add({-40, 5}, times / 2);
  rest.add(most, times / 2 + 1);
  added.merge(rest);
  CHECK(added == sums);
}

TEST_CASE("magnitude sums: finer cuts merge into coarser ones, part by part", "[table]") {
  const std::vector<float> values = values_of(50'000, 12);
  const std::vector<std::uint64_t>& all = standard_cuts();
  MagnitudeSums fine, again;
  fine.add(view_of(values));
  for (const MagnitudeSums::Part& part : fine.parts()) again.add(part);
  REQUIRE(again == fine);
  for (const std::size_t kept : {0, 1, 3}) {
    const std::vector<std::uint64_t> cuts(all.begin() + 1,
                                          all.begin() + 1 + static_cast<int>(kept));
    MagnitudeSums coarse(cuts), merged(cuts);
    coarse.add(view_of(values));
    merged.merge(fine);
    REQUIRE(merged == coarse);
    REQUIRE_THROWS_AS(fine.merge(coarse), std::invalid_argument);
  }
  MagnitudeSums::Part none = fine.parts().front();
  none.segment = static_cast<std::uint32_t>(all.size()) + 1;
  REQUIRE_THROWS_AS(fine.add(none), std::invalid_argument);
  none = fine.parts().front();
  none.exponent = 5000;
  REQUIRE_THROWS_AS(fine.add(none), std::invalid_argument);
}

TEST_CASE("magnitude sums: a factor moves binades", "[table]") {
  const std::vector<float> values = values_of(3000, 4);
  MagnitudeSums sums, shifted;
  sums.add(view_of(values));
  shifted.merge(sums, 12);
  const Boundaries b = boundaries(kBinary16);
  CHECK(shifted.share_below(b.nonzero) == sums.share_below(before_scaling(b, 12).nonzero));
  CHECK_FALSE(shifted == sums);
  CHECK(shifted.top_exponent() == 127 + 12);
}

TEST_CASE("magnitude sums: a boundary inside a segment gives true bounds", "[oracle]") {
  std::vector<float> values;
  std::mt19937 random(5);
  for (int i = 0; i < 4000; ++i) {
    values.push_back(std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f,
                                -3 + static_cast<int>(random() % 6)));
  }
  MagnitudeSums sums;
  sums.add(view_of(values));
  const Magnitude m{0, kFractionUnit / 3};
  const Judge judge(widen(values), m);
  const MassShare found = sums.share_below(m);
  CHECK(found.l1.low < found.l1.high);
  CHECK(exactly(found.l1.low) < judge.l1 / judge.all1);
  CHECK(exactly(found.l1.high) > judge.l1 / judge.all1);
  CHECK(exactly(found.l2.low) < judge.l2 / judge.all2);
  CHECK(exactly(found.l2.high) > judge.l2 / judge.all2);
}

TEST_CASE("magnitude sums: masses are rounded outward", "[oracle]") {
  const std::vector<float> values = values_of(3000, 6);
  MagnitudeSums sums;
  sums.add(view_of(values));
  const Magnitude m = boundaries(kBinary16).nonzero;
  const int reference = GENERATE(0, 127, -60);
  const MassSplit split = sums.split_at(m, reference);
  const Judge judge(widen(values), m);
  const Rational unit = oracle::power_of_two(-reference);
  const auto holds = [](const Bounds& b, const Rational& r) {
    return exactly(b.low) <= r && r <= exactly(b.high) &&
           b.high <= std::nextafter(std::nextafter(b.low, 1e300), 1e300);
  };
  CHECK(holds(split.below.l1, judge.l1 * unit));
  CHECK(holds(split.below.l2, judge.l2 * unit * unit));
  CHECK(holds(split.above.l1, (judge.all1 - judge.l1) * unit));
  CHECK(holds(split.above.l2, (judge.all2 - judge.l2) * unit * unit));
}

TEST_CASE("magnitude sums: nothing, and cuts of one's own", "[table]") {
  MagnitudeSums none;
  CHECK(none.share_below({0, 0}) == MassShare{});
  CHECK_FALSE(none.top_exponent());
  none.add(view_of(std::vector<float>{0.0f, -0.0f, INFINITY, NAN}));
  CHECK(none.share_below({0, 0}) == MassShare{});
  CHECK_THROWS_AS(MagnitudeSums({5, 5}), std::invalid_argument);
  CHECK_THROWS_AS(none.merge(MagnitudeSums({5})), std::invalid_argument);
  const std::vector<float> values = values_of(3000, 8);
  MagnitudeSums odd({kFractionUnit / 3, kFractionUnit / 2 + 1});  // no cut of any format
  odd.add(view_of(values));
  const Magnitude m{-13, kFractionUnit / 3};
  const Judge judge(widen(values), m);
  check_share(odd.share_below(m).l1, judge.l1, judge.all1);
}

TEST_CASE("magnitude sums: packed, they are the same") {
  MagnitudeSums sums({kFractionUnit / 2});
  REQUIRE(PackedSums(sums).unpacked() == sums);
  const std::vector<float> values = values_of(1000, 3);
  sums.add(view_of(values));
  sums.merge(MagnitudeSums(sums), 900);
  const std::uint64_t many = std::numeric_limits<std::uint64_t>::max();
  sums.add({-1074, 0}, many);
  sums.add({1023, kFractionUnit - 1}, many);  // all limbs are in use
  CHECK(PackedSums(sums).unpacked() == sums);
  CHECK(PackedSums(sums) == PackedSums(sums));
  CHECK_FALSE(PackedSums(sums) == PackedSums(MagnitudeSums({kFractionUnit / 2})));
}

}  // namespace test_magnitude_sums
