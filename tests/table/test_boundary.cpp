// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/boundary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count.hpp"
#include "table/grid.hpp"

namespace test_boundary {

using namespace halfscope;
using oracle::Class;

constexpr double kScales[] = {1.0,
                              0x1p10,
                              0x1p-7,
                              65536.0,
                              1000.0,
                              3.0,
                              0.1,
                              65535.5,
                              1e-3,
                              1.0 / 3.0,
                              0x1.fffffffffffffp9,
                              0x1.0000000000001p0,
                              1e30};

oracle::Rational exact(double x) {
  return oracle::value(oracle::layout("binary64"), std::bit_cast<std::uint64_t>(x));
}

bool all_first(const oracle::Layout& f, const Boundaries& b, const oracle::Rational& scale) {
  return grid::is_first(f, Class::subnormal, grid::point(b.nonzero), scale) &&
         grid::is_first(f, Class::normal, grid::point(b.normal), scale) &&
         grid::is_first(f, Class::overflow, grid::point(b.overflow), scale);
}

void insert_fractions(std::set<std::uint64_t>& into, const Boundaries& b) {
  for (const Magnitude& m : {b.nonzero, b.normal, b.overflow}) {
    if (m.fraction != 0) into.insert(m.fraction);
  }
}

Boundaries found_by_oracle(const oracle::Layout& f, const oracle::Rational& scale) {
  return {grid::magnitude(grid::first_of(f, Class::subnormal, scale)),
          grid::magnitude(grid::first_of(f, Class::normal, scale)),
          grid::magnitude(grid::first_of(f, Class::overflow, scale))};
}

struct FormatRow {
  const char* what;
  Format format;
  Magnitude nonzero, normal, overflow;
};

bool ascend_inside_a_binade(const std::vector<std::uint64_t>& cuts) {
  return !cuts.empty() && cuts.front() > 0 && cuts.back() < kFractionUnit &&
         std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end();
}

TEST_CASE("boundaries of the formats, worked by hand", "[table][boundary]") {
  const auto last = [](int bits) { return kFractionUnit - (kFractionUnit >> bits); };
  const FormatRow rows[] = {
      {"binary16: above 2^-25, 2^-14 - 2^-25, 65520",
       kBinary16,
       {-25, 1},
       {-15, last(10)},
       {15, last(11)}},
      {"bfloat16: above 2^-134, 2^-126 - 2^-134, (2 - 2^-8) * 2^127",
       kBfloat16,
       {-134, 1},
       {-127, last(7)},
       {127, last(8)}},
      {"TF32: binary16's fractions at binary32's exponents",
       kTf32,
       {-137, 1},
       {-127, last(10)},
       {127, last(11)}},
      {"E4M3: above 2^-10, 7/8 under 2^-6, above 464",
       kFloat8E4M3,
       {-10, 1},
       {-7, last(3)},
       {8, (kFractionUnit >> 4) * 13 + 1}},
      {"E5M2: above 2^-17, 3/4 under 2^-14, 61440",
       kFloat8E5M2,
       {-17, 1},
       {-15, last(2)},
       {15, last(3)}},
  };
  for (const FormatRow& row : rows) {
    CAPTURE(row.what);
    const Boundaries b = boundaries(row.format);
    CHECK(b.nonzero == row.nonzero);
    CHECK(b.normal == row.normal);
    CHECK(b.overflow == row.overflow);
  }
}

TEST_CASE("what is flushed is what the emulator flushes", "[table][boundary][oracle]") {
  for (const NamedFormat& row : kFormats) {
    const Format f = row.format;
    if (f.precision > 24) continue;  // binary64 has no neighbours to try in a double
    for (const NamedSubnormals& rule : kSubnormals) {
      INFO(row.name << " " << rule.name);
      const Modes modes = with_subnormals({}, rule.rule);
      const auto rounded = [&](double x) { return from_double(f, x, modes).bits; };
      const Boundaries b = boundaries(f, 1.0, 1.0, rule.rule);
      const double nonzero = to_double(b.nonzero), normal = to_double(b.normal);
      CHECK(rounded(nonzero) != 0);
      CHECK(rounded(std::nextafter(nonzero, 0.0)) == 0);
      CHECK(rounded(normal) >> f.fraction_bits() == 1);
      CHECK(rounded(std::nextafter(normal, 0.0)) >> f.fraction_bits() == 0);
    }
  }
  CHECK(to_double(boundaries(kBinary16, 1, 1, Subnormals::flush).nonzero) == 0x1p-14 - 0x1p-26);
  CHECK(to_double(boundaries(kBinary16, 1, 1, Subnormals::flush_before).nonzero) == 0x1p-14);
  CHECK(to_double(boundaries(kBinary16, 1, 1, Subnormals::flush_result).nonzero) ==
        0x1p-14 - 0x1p-25);
  for (const NamedSubnormals& rule : kSubnormals) CHECK(find_subnormals(rule.name) == rule.rule);
  CHECK(!find_subnormals("Flush"));
}

TEST_CASE("boundaries are the oracle's, found by bisection", "[table][boundary][oracle]") {
  for (const NamedFormat& row : kFormats) {
    CAPTURE(row.name);
    const oracle::Layout& layout = oracle::layout(row.name);
    const Boundaries want = found_by_oracle(layout, 1);
    const Boundaries got = boundaries(row.format);
    CHECK(got.nonzero == want.nonzero);
    CHECK(got.normal == want.normal);
    CHECK(got.overflow == want.overflow);
  }
}

TEST_CASE("boundaries are the first of their class at every scale", "[table][boundary][oracle]") {
  for (const NamedFormat& row : kFormats) {
    const oracle::Layout& layout = oracle::layout(row.name);
    for (const double loss : kScales) {
      for (const double recorded : kScales) {
        CAPTURE(row.name, loss, recorded);
        const oracle::Rational scale = exact(loss) / exact(recorded);
        REQUIRE(all_first(layout, boundaries(row.format, loss, recorded), scale));
      }
    }
  }
}

TEST_CASE("powers of two move boundaries by whole binades", "[table][boundary]") {
  for (const NamedFormat& row : kFormats) {
    const Boundaries at_one = boundaries(row.format);
    for (int k = -300; k <= 300; ++k) {
      CAPTURE(row.name, k);
      const Boundaries b = boundaries(row.format, std::ldexp(1.0, k));
      REQUIRE(b.nonzero == Magnitude{at_one.nonzero.exponent - k, at_one.nonzero.fraction});
      REQUIRE(b.normal == Magnitude{at_one.normal.exponent - k, at_one.normal.fraction});
      REQUIRE(b.overflow == Magnitude{at_one.overflow.exponent - k, at_one.overflow.fraction});
    }
  }
}

TEST_CASE("extreme scales stay exact", "[table][boundary][oracle]") {
  const double least = std::numeric_limits<double>::denorm_min();
  const double most = std::numeric_limits<double>::max();
  const oracle::Layout& half = oracle::layout("binary16");
  for (const auto& [loss, recorded] :
       {std::pair{least, most}, {most, least}, {least, 1.0}, {1.0, most}, {3 * least, 1000.0}}) {
    CAPTURE(loss, recorded);
    const oracle::Rational scale = exact(loss) / exact(recorded);
    CHECK(all_first(half, boundaries(kBinary16, loss, recorded), scale));
  }
}

TEST_CASE("a boundary that is slightly wrong is seen", "[table][boundary]") {
  const oracle::Layout& half = oracle::layout("binary16");
  struct Row {
    const char* what;
    Class first_of;
    Magnitude wrong;
  };
  const Row rows[] = {
      {"2^-24 for 2^-25", Class::subnormal, {-24, 0}},
      {"2^-25 itself, which rounds to zero", Class::subnormal, {-25, 0}},
      {"two units above 2^-25", Class::subnormal, {-25, 2}},
      {"2^-14 for 2^-14 - 2^-25", Class::normal, {-14, 0}},
      {"2^-14 - 2^-26", Class::normal, {-15, kFractionUnit - (kFractionUnit >> 11)}},
      {"65504 for 65520", Class::overflow, {15, kFractionUnit - (kFractionUnit >> 10)}},
      {"above 65520", Class::overflow, {15, kFractionUnit - (kFractionUnit >> 11) + 1}},
      {"65536", Class::overflow, {16, 0}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK_FALSE(grid::is_first(half, row.first_of, grid::point(row.wrong), 1));
  }
}

TEST_CASE("unscaled_binade is the first magnitude of its binade", "[table][boundary][oracle]") {
  for (const double scale : kScales) {
    for (int exponent = -160; exponent <= 160; exponent += 5) {
      CAPTURE(scale, exponent);
      const grid::Point p = grid::point(unscaled_binade(exponent, scale));
      const oracle::Rational limit = oracle::power_of_two(exponent) * exact(scale);
      REQUIRE(grid::value(p) >= limit);
      REQUIRE(grid::value(p - 1) < limit);
    }
  }
}

TEST_CASE("standard cuts are the fractions of every 16- and 8-bit boundary",
          "[table][boundary][oracle]") {
  std::set<std::uint64_t> want;
  for (const oracle::Layout& f : oracle::kLayouts) {
    const bool with_block_scale = f.exponent_bits + f.fraction_bits < 7;
    if (f.fraction_bits <= 10 && !with_block_scale) insert_fractions(want, found_by_oracle(f, 1));
  }
  REQUIRE(ascend_inside_a_binade(standard_cuts()));
  CHECK(standard_cuts() == std::vector<std::uint64_t>(want.begin(), want.end()));
}

TEST_CASE("cuts_for holds every fraction that its scales ask for", "[table][boundary][oracle]") {
  for (const NamedFormat& row : kFormats) {
    const oracle::Layout& layout = oracle::layout(row.name);
    for (const auto& [loss, recorded] :
         {std::pair{1000.0, 1.0}, {1.0, 3.0}, {0.1, 65535.5}, {65536.0, 65536.0}}) {
      CAPTURE(row.name, loss, recorded);
      const std::vector<std::uint64_t> cuts = cuts_for(row.format, loss, recorded);
      REQUIRE(ascend_inside_a_binade(cuts));
      std::set<std::uint64_t> want;
      insert_fractions(want, found_by_oracle(layout, exact(loss) / exact(recorded)));
      insert_fractions(want, found_by_oracle(layout, 1 / exact(recorded)));
      const Magnitude binade = unscaled_binade(0, recorded);  // judged above
      if (binade.fraction != 0) want.insert(binade.fraction);
      CHECK(std::includes(cuts.begin(), cuts.end(), want.begin(), want.end()));
    }
  }
}

TEST_CASE("counts at scales that are no powers of two", "[table][boundary][oracle]") {
  // binary64 values on and beside each boundary; a table with cuts_for must class them all exactly.
  for (const NamedFormat& row : kFormats) {
    if (row.format.precision > 11) continue;
    const oracle::Layout& layout = oracle::layout(row.name);
    for (const auto& [loss, recorded] :
         {std::pair{1000.0, 1.0}, {1.0, 3.0}, {0.1, 65535.5}, {65535.5, 1000.0}}) {
      CAPTURE(row.name, loss, recorded);
      const oracle::Rational scale = exact(loss) / exact(recorded);
      const Boundaries limits = found_by_oracle(layout, scale);
      std::vector<double> values;
      std::uint64_t want[4] = {};
      for (const Magnitude& m : {limits.nonzero, limits.normal, limits.overflow}) {
        for (grid::Point p = grid::point(m) - 3; p <= grid::point(m) + 3; ++p) {
          const Magnitude near = grid::magnitude(p);
          values.push_back(
              std::ldexp(static_cast<double>(kFractionUnit + near.fraction), near.exponent - 52));
          ++want[static_cast<int>(oracle::class_of(layout, grid::value(p) * scale))];
        }
      }
      const TensorView view{Dtype::f64, reinterpret_cast<const std::byte*>(values.data()),
                            values.size()};
      const BinadeTable table = count_binades_scalar(view, cuts_for(row.format, loss, recorded));
      const Classes got = classify(table, boundaries(row.format, loss, recorded));
      CHECK(got == Classes{want[0], want[1], want[2], want[3]});
    }
  }
}

TEST_CASE("a scale must be positive and finite", "[table][boundary]") {
  for (const double bad : {0.0, -0.0, -1.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(boundaries(kBinary16, bad), std::invalid_argument);
    CHECK_THROWS_AS(boundaries(kBinary16, 1.0, bad), std::invalid_argument);
    CHECK_THROWS_AS(unscaled_binade(0, bad), std::invalid_argument);
  }
}

}  // namespace test_boundary
