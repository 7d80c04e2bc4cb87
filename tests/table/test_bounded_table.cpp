// SPDX-License-Identifier: Apache-2.0
// Bounds against brute force: every table stands for all the tensors that it may be of; what it
// says must hold for each of them, and be reached by some.
#include "halfscope/table/bounded_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>
#include "catch.hpp"

namespace test_bounded_table {

using namespace halfscope;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A span by doubles: 0 and infinity are its open ends.
Span span(double first, double last, std::uint64_t count) {
  Span s;
  if (first > 0) s.first = magnitude_of(first);
  if (last < kInfinity) s.last = magnitude_of(last);
  s.count = count;
  return s;
}

struct Value {
  double low, high;  ///< a magnitude in [low, high]; infinity stands for NaN as well
};

/// A table of values with bounds, and these.
struct Known {
  std::vector<Value> values;
  BoundedTable table;

  void add(double low, double high) {
    values.push_back({low, high});
    if (low == high && low == 0) {
      BinadeTable zero;
      zero.add_specials({.zero = 1});
      table.merge(zero);
    } else if (low == high) {
      BinadeTable one;
      one.add(magnitude_of(low), false);
      table.merge(one);
    } else {
      table.add(span(low, high, 1));
    }
  }
};

/// Edges are powers of two and halves beside them, so that limits of FP16 fall on and between them.
Known random_values(std::mt19937& random, int count) {
  std::uniform_int_distribution<int> exponent(-30, 20), kind(0, 9), width(0, 6);
  Known known;
  for (int i = 0; i < count; ++i) {
    const double at = std::ldexp(kind(random) < 5 ? 1.0 : 1.5, exponent(random));
    switch (kind(random)) {
      case 0: known.add(0, at); break;
      case 1: known.add(at, kInfinity); break;
      case 2: known.add(0, 0); break;
      case 3: known.add(at, at); break;
      default: known.add(at, at * std::exp2(0.5 * width(random)));
    }
  }
  return known;
}

/// How many values of a kind there are: where all are as small as they may be, and as large.
template <typename Is>
Interval count(const std::vector<Value>& values, const Is& is) {
  Interval out;
  for (const Value& v : values) {
    // Classes are ranges of magnitudes, so that the ends, and whether a range lies inside, tell.
    const bool low = is(v.low), high = is(v.high), inside = is.inside(v);
    out += Interval(low && high ? 1 : 0, low || high || inside ? 1 : 0);
  }
  return out;
}

/// Finite nonzero magnitudes from `first` on and below `end`.
struct InRange {
  double first, end;
  bool operator()(double x) const { return x > 0 && std::isfinite(x) && x >= first && x < end; }
  bool inside(const Value& v) const { return v.low < end && v.high >= first && v.high > 0; }
};

TEST_CASE("bounded table: classes hold for every tensor that the bounds allow, and no more",
          "[bounded_table]") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const Known known = random_values(random, 1 + round % 12);
    for (int k = -24; k <= 40; k += 4) {
      const Boundaries limits = before_scaling(boundaries(kBinary16), k);
      const double nonzero = to_double(limits.nonzero), normal = to_double(limits.normal),
                   overflow = to_double(limits.overflow);
      const Classes c = classify(known.table, limits);
      INFO("round " << round << ", scale 2^" << k);
      CHECK(c.flushed_to_zero == count(known.values, InRange{0, nonzero}));
      CHECK(c.subnormal == count(known.values, InRange{nonzero, normal}));
      CHECK(c.normal == count(known.values, InRange{normal, overflow}));
      CHECK(c.overflow == count(known.values, InRange{overflow, kInfinity}));
    }
    CHECK(known.table.total() == known.values.size());
    CHECK(known.table.finite_nonzero() == count(known.values, InRange{0, kInfinity}));
  }
}

TEST_CASE("bounded table: many magnitudes are asked in one pass as one by one", "[bounded_table]") {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    Known known = random_values(random, 12);
    std::vector<Magnitude> limits;
    for (int e = -32; e <= 24; ++e) {
      for (const double x : {1.0, 1.25, 1.5, std::nextafter(1.5, 2.0)}) {
        limits.push_back(magnitude_of(std::ldexp(x, e)));
      }
    }
    if (round % 3 == 0) known.table.limit_largest({3, 0});
    const std::vector<Interval> counts = known.table.at_or_above(limits);
    REQUIRE(counts.size() == limits.size());
    for (std::size_t i = 0; i < limits.size(); ++i) {
      CHECK(counts[i] == known.table.at_or_above(limits[i]));
    }
  }
  CHECK(BoundedTable().at_or_above(std::vector<Magnitude>()).empty());
}

TEST_CASE("bounded table: tables add to the same in any order", "[bounded_table]") {
  std::mt19937 random(8);
  for (int round = 0; round < 50; ++round) {
    std::vector<BoundedTable> parts;
    for (int i = 0; i < 5; ++i) {
      parts.push_back(random_values(random, 4).table);
      const auto least = parts.back().largest_at_least();
      if (least && i % 2 == 0) parts.back().limit_largest({least->exponent + 1, 0});
    }
    BoundedTable forward, backward;
    for (const BoundedTable& part : parts) forward.merge(part);
    std::shuffle(parts.begin(), parts.end(), random);
    for (const BoundedTable& part : parts) backward.merge(part);
    CHECK(forward == backward);
    CHECK(forward.largest() == backward.largest());
  }
}

TEST_CASE("bounded table: a power of two moves the bounds and nothing else", "[bounded_table]") {
  std::mt19937 random(9);
  const Known known = random_values(random, 40);
  const BoundedTable moved = known.table.scaled_by_power_of_two(-300).scaled_by_power_of_two(290);
  for (int k = -24; k <= 40; ++k) {
    CHECK(classify(moved, before_scaling(boundaries(kBinary16), k + 10)) ==
          classify(known.table, before_scaling(boundaries(kBinary16), k)));
  }
}

TEST_CASE("bounded table: extremes are bounds, and a limit narrows what spans allow",
          "[bounded_table]") {
  BoundedTable table;
  CHECK(!table.largest());
  CHECK(!table.smallest());
  table.add(span(1, 4, 10));
  CHECK(table.largest() == magnitude_of(4));
  CHECK(table.largest_at_least() == magnitude_of(1));
  CHECK(table.smallest() == magnitude_of(1));
  CHECK(table.smallest_at_most() == magnitude_of(4));
  table.limit_largest(magnitude_of(3));
  CHECK(table.at_or_above(magnitude_of(3.5)) == Interval(0));
  CHECK(table.at_or_above(magnitude_of(2)) == Interval(0, 10));
  CHECK(table.at_or_above(magnitude_of(1)) == Interval(10));

  table.add(span(0, 0.5, 7));
  CHECK(table.zero() == Interval(0, 7));
  CHECK(!table.smallest());
  CHECK(table.smallest_at_most() == magnitude_of(4));

  BoundedTable open;
  open.add(span(8, kInfinity, 2));
  CHECK(!open.largest());
  CHECK(open.nan() == Interval(0, 2));
  CHECK(open.inf() == Interval(0, 2));
  Span no_nan = span(8, kInfinity, 3);
  no_nan.nan = false;
  open.add(no_nan);
  CHECK(open.nan() == Interval(0, 2));
  CHECK(open.inf() == Interval(0, 5));
  table.merge(open);
  CHECK(!table.largest());
  CHECK(table.at_or_above(magnitude_of(16)) == Interval(0, 5));
}

TEST_CASE("bounded table: a span that ends below where it begins is refused", "[bounded_table]") {
  BoundedTable table;
  CHECK_THROWS_AS(table.add(span(2, 1, 1)), std::invalid_argument);
  table.add(span(2, 1, 0));  // of no values nothing is said
  CHECK(table.total() == 0);
}

TEST_CASE("bounded table: parts hold all finite nonzero values", "[bounded_table]") {
  std::mt19937 random(10);
  const Known known = random_values(random, 60);
  Interval sum;
  known.table.for_each_part([&](const auto& first, const auto& last, const Interval& n) {
    CHECK((!first || !last || *first <= *last));
    sum += n;
  });
  CHECK(sum == known.table.finite_nonzero());
}

TEST_CASE("bounded table: parts end at the largest finite magnitude, of open spans too",
          "[bounded_table]") {
  BoundedTable table;
  table.add(span(1, kInfinity, 2));
  table.add(span(2, 8, 1));
  table.add(span(16, kInfinity, 3));  // infinite or NaN, one and all
  table.limit_largest(magnitude_of(4));
  std::vector<std::optional<Magnitude>> ends;
  table.for_each_part(
      [&](const auto&, const auto& last, const Interval&) { ends.push_back(last); });
  CHECK(ends ==
        std::vector<std::optional<Magnitude>>{magnitude_of(4), magnitude_of(4), magnitude_of(16)});
}

TEST_CASE("bounded table: of very many spans the ends move outward, and the bounds still hold",
          "[bounded_table]") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> unit(1, 2);
  std::uniform_int_distribution<int> exponent(-20, 10);
  std::vector<Value> values;
  BoundedTable table;
  for (std::size_t i = 0; i < 3 * kMostSpans; ++i) {
    const double low = std::ldexp(unit(random), exponent(random));
    values.push_back({low, low * unit(random)});
    BoundedTable one;
    one.add(span(values.back().low, values.back().high, 1));
    table.merge(one);
  }
  CHECK(table.spans().size() <= kMostSpans);
  CHECK(table.total() == values.size());
  for (int e = -20; e <= 12; ++e) {
    const double at = std::ldexp(1.0, e);
    const Interval got = table.at_or_above(magnitude_of(at));
    const Interval want = count(values, InRange{at, kInfinity});
    CHECK(got.low <= want.low);
    CHECK(got.high >= want.high);
    CHECK(got.high - want.high <= values.size() / 10);
  }
}

TEST_CASE("bounded table: a span that ends where a class begins, or just below, is surely of one",
          "[bounded_table]") {
  const Boundaries limits = boundaries(kBinary16);
  const auto below = [](Magnitude m) {
    return m.fraction == 0 ? Magnitude{m.exponent - 1, kFractionUnit - 1}
                           : Magnitude{m.exponent, m.fraction - 1};
  };
  const Magnitude starts[] = {limits.nonzero, limits.normal, limits.overflow};
  for (const Magnitude& start : starts) {
    BoundedTable table;
    table.add(Span{start, Magnitude{start.exponent + 1, 0}, true, 3});
    table.add(Span{Magnitude{start.exponent - 1, 0}, below(start), true, 5});
    const Classes c = classify(table, limits);
    CAPTURE(start.exponent);
    CHECK(table.at_or_above(start) == Interval(3));
    const bool flush = start == limits.nonzero, subnormal = start == limits.normal;
    CHECK((flush ? c.subnormal : subnormal ? c.normal : c.overflow).low == 3);
    CHECK((flush ? c.flushed_to_zero : subnormal ? c.subnormal : c.normal).low == 5);
  }
}

}  // namespace test_bounded_table
