// SPDX-License-Identifier: Apache-2.0
// Histograms against their own values: every answer holds the true count, and no answer is wider
// than the buckets that a boundary cuts.
#include "analyzers/readers/common/histogram.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "catch.hpp"

namespace test_histogram {

using namespace halfscope;
using analyzers::readers::common::Histogram;
using analyzers::readers::common::table_of;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

bool holds(const Histogram& h, std::size_t bucket, double x) {
  const bool last = bucket + 1 == h.counts.size();
  return x >= h.edges[bucket] &&
         (x < h.edges[bucket + 1] || (last && h.last_closed && x == h.edges[bucket + 1]));
}

/// What np.histogram, min and max say of values: NaN goes through both.
Histogram count(std::vector<double> edges, const std::vector<double>& values) {
  Histogram h;
  h.edges = std::move(edges);
  h.counts.resize(h.edges.size() - 1);
  bool nan = false;
  double min = kInf, max = -kInf;
  for (const double x : values) {
    nan = nan || std::isnan(x);
    min = std::fmin(min, x);
    max = std::fmax(max, x);
    for (std::size_t i = 0; i < h.counts.size(); ++i) h.counts[i] += holds(h, i, x) ? 1 : 0;
  }
  h.min = nan ? kNan : min;
  h.max = nan ? kNan : max;
  h.total = static_cast<double>(values.size());
  return h;
}

// Where binary16 changes class under round to nearest, ties to even: 2^-25 itself goes to zero,
// 2^-14 less half a step to 2^-14, and 65520 to infinity.
enum Class { flushed, subnormal, normal, overflow };
const double kNormal = 0x1p-14 - 0x1p-25;

Class class_of(double x, int k) {
  const double scaled = std::ldexp(std::abs(x), k);
  if (scaled <= 0x1p-25) return flushed;
  if (scaled < kNormal) return subnormal;
  return scaled < 65520 ? normal : overflow;
}

/// How many values lie in buckets of which numbers are of class c and others are not.
double cut_by(const Histogram& h, Class c, int k) {
  double cut = 0;
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    const double left = h.edges[i], right = h.edges[i + 1];
    const bool last = i + 1 == h.counts.size() && h.last_closed;
    const double end = last ? right : std::nextafter(right, left);
    const bool has_zero = left <= 0 && end >= 0;
    const double least = has_zero ? 0 : std::min(std::abs(left), std::abs(end));
    const double most = std::max(std::abs(left), std::abs(end));
    const bool whole = class_of(least, k) == c && class_of(most, k) == c && !has_zero;
    const bool none = class_of(most, k) < c || class_of(least, k) > c;
    if (!whole && !none) cut += h.counts[i];
  }
  return cut;
}

bool within(Interval i, double x) {
  return static_cast<double>(i.low) <= x && x <= static_cast<double>(i.high);
}

double count_if(const std::vector<double>& values, bool (*is)(double)) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), is));
}

void check_specials(const BoundedTable& table, const std::vector<double>& values) {
  CHECK(table.total() == values.size());
  CHECK(within(table.zero(), count_if(values, [](double x) { return x == 0; })));
  CHECK(within(table.nan(), count_if(values, [](double x) { return std::isnan(x); })));
  CHECK(within(table.inf(), count_if(values, [](double x) { return std::isinf(x); })));
  CHECK(within(table.finite_nonzero(),
               count_if(values, [](double x) { return std::isfinite(x) && x != 0; })));
}

void check_extremes(const BoundedTable& table, const std::vector<double>& values, bool exact) {
  double largest = 0, smallest = kInf;
  for (const double x : values) {
    if (!std::isfinite(x) || x == 0) continue;
    largest = std::max(largest, std::abs(x));
    smallest = std::min(smallest, std::abs(x));
  }
  if (largest == 0) return;
  if (exact) {
    REQUIRE(table.largest());
    CHECK(to_double(*table.largest()) == largest);
    CHECK(to_double(table.largest_at_least().value()) == largest);
  }
  if (table.largest()) CHECK(to_double(*table.largest()) >= largest);
  if (table.largest_at_least()) CHECK(to_double(*table.largest_at_least()) <= largest);
  if (table.smallest()) CHECK(to_double(*table.smallest()) <= smallest);
  if (table.smallest_at_most()) CHECK(to_double(*table.smallest_at_most()) >= smallest);
}

/// Every scale of `analyze`: the truth inside, and no more beside it than must be.
void check_classes(const BoundedTable& table, const Histogram& h,
                   const std::vector<double>& values) {
  double in_buckets = 0;
  for (const double n : h.counts) in_buckets += n;
  const double left_out = static_cast<double>(values.size()) - in_buckets;
  for (int k = -24; k <= 40; ++k) {
    const Classes found = classify(table, before_scaling(boundaries(kBinary16), k));
    double truth[4] = {};
    for (const double x : values) {
      if (std::isfinite(x) && x != 0) truth[class_of(x, k)] += 1;
    }
    const Interval intervals[] = {found.flushed_to_zero, found.subnormal, found.normal,
                                  found.overflow};
    for (const Class c : {flushed, subnormal, normal, overflow}) {
      const Interval i = intervals[c];
      CAPTURE(k, static_cast<int>(c), i.low, i.high, truth[c]);
      REQUIRE(within(i, truth[c]));
      REQUIRE(static_cast<double>(i.high - i.low) <= cut_by(h, c, k) + left_out);
    }
  }
}

void check_all(const Histogram& h, const std::vector<double>& values) {
  const BoundedTable table = table_of(h);
  check_specials(table, values);
  const bool exact = h.min && h.max && std::isfinite(*h.min) && std::isfinite(*h.max);
  check_extremes(table, values, exact);
  check_classes(table, h, values);
}

/// Of torch, tensorboardX and TensorFlow.
std::vector<double> default_edges() {
  std::vector<double> edges = {0};
  for (double v = 1e-12; v < 1e20; v *= 1.1) edges.insert(edges.end(), {v, -v});
  std::sort(edges.begin(), edges.end());
  return edges;
}

std::vector<double> linear_edges(const std::vector<double>& values, int buckets) {
  double low = kInf, high = -kInf;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  std::vector<double> edges;
  for (int i = 0; i < buckets; ++i) edges.push_back(low + (high - low) * i / buckets);
  edges.push_back(high);
  return edges;
}

/// Values at the classes' ends, at bucket edges, and around both.
std::vector<double> adversarial() {
  std::vector<double> values = {0.0, -0.0, 1e-13, -1e-13, 1e-12, -1e-12, 5e-324, -5e-324};
  for (const double x : {0x1p-25, 0x1p-24, 0x1p-14, kNormal, 65504.0, 65520.0, 1.0, 1e-12 * 1.1}) {
    for (const double y : {std::nextafter(x, 0), x, std::nextafter(x, kInf)}) {
      values.insert(values.end(), {y, -y});
    }
  }
  const std::vector<double> edges = default_edges();
  for (std::size_t i = 0; i < edges.size(); i += 97) {
    values.insert(values.end(), {edges[i], std::nextafter(edges[i], -kInf)});
  }
  return values;
}

std::vector<double> log_normal(unsigned seed, double mean, double deviation, bool zeros) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> log2(mean, deviation);
  std::vector<double> values(400);
  for (double& x : values) {
    x = (random() % 2 == 0 ? 1 : -1) * std::exp2(log2(random));
    if (zeros && random() % 5 == 0) x = 0;
  }
  return values;
}

TEST_CASE("histograms answer no more than they know and no less", "[histogram]") {
  std::vector<std::vector<double>> tensors = {adversarial(), {1.0}, {0.0}, {-0.0, 0.0}, {0x1p-25}};
  for (unsigned seed = 0; seed < 4; ++seed) {
    tensors.push_back(log_normal(seed, -20, 3, seed % 2 == 1));
    tensors.push_back(log_normal(seed, -5, 8, seed % 2 == 0));
  }
  tensors.push_back(std::vector<double>(50, -3.5));
  tensors.push_back({1.0, 1.001, 1.002, -1.003});  // the largest are in one bucket
  tensors.push_back(log_normal(9, -20, 3, false));
  for (double& x : tensors.back()) x = std::abs(x);
  for (const std::vector<double>& values : tensors) {
    CAPTURE(values.size(), values.front());
    check_all(count(default_edges(), values), values);
    check_all(count(linear_edges(values, 30), values), values);
    check_all(count({-kInf, kInf}, values), values);
    std::vector<double> inside = values;  // nothing tells of others where there is no total
    std::erase_if(inside, [](double x) { return std::abs(x) > default_edges().back(); });
    Histogram silent = count(default_edges(), inside);
    silent.min = silent.max = silent.total = std::nullopt;
    check_all(silent, inside);
  }
}

TEST_CASE("histograms of values that buckets leave out", "[histogram]") {
  const std::vector<double> base = log_normal(3, -12, 5, true);
  const std::vector<std::vector<double>> more = {{1e21},       {-1e21, 1e22},       {kInf},
                                                 {-kInf},      {kInf, -kInf, 1e21}, {kNan, kNan},
                                                 {kNan, kInf}, {kNan, 1e21},        {kInf, 1e21}};
  for (const auto& extra : more) {
    std::vector<double> values = base;
    values.insert(values.end(), extra.begin(), extra.end());
    CAPTURE(extra.front(), extra.size());
    check_all(count(default_edges(), values), values);
  }
}

TEST_CASE("min and max say what the left-out values are", "[histogram][table]") {
  struct Row {
    const char* what;
    std::vector<double> values;
    Interval nan, inf, overflow;
  };
  const std::vector<Row> rows = {
      {"NaN alone", {1, kNan}, 1, 0, 0},
      {"NaN, and one that may be anything", {1, kNan, kInf}, {1, 2}, {0, 1}, {0, 1}},
      {"infinity alone", {1, kInf}, 0, 1, 0},
      {"both infinities", {1, kInf, -kInf}, 0, 2, 0},
      {"infinity, and one above the buckets", {1, kInf, 20}, 0, {1, 2}, {0, 1}},
      {"finite above", {1, 1e6}, 0, 0, 1},
      {"finite on both sides", {1, 1e6, -1e6, 1e5}, 0, 0, {2, 3}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const BoundedTable table = table_of(count({-10, 0.5, 10}, row.values));
    CHECK(table.nan() == row.nan);
    CHECK(table.inf() == row.inf);
    CHECK(classify(table, boundaries(kBinary16)).overflow == row.overflow);
  }
}

TEST_CASE("what one value wide is known exactly", "[histogram]") {
  Histogram equal;  // as TensorFlow 2 has it where all values are the same
  equal.edges = {-2.5, -2.5, -2.5};
  equal.counts = {0, 7};
  CHECK(table_of(equal).is_exact());
  CHECK(to_double(*table_of(equal).largest()) == 2.5);
  CHECK(table_of(equal).exact().finite_nonzero() == 7);

  Histogram zeros;
  zeros.edges = {0, 0};
  zeros.counts = {5};
  CHECK(table_of(zeros).zero() == Interval(5));
  CHECK(table_of(zeros).is_exact());

  Histogram positive;  // no zero is below the least value
  positive.edges = {-1, 1};
  positive.counts = {3};
  positive.min = 0x1p-20;
  positive.max = 0.5;
  CHECK(table_of(positive).zero() == Interval(0));
  CHECK(classify(table_of(positive), boundaries(kBinary16)).flushed_to_zero == Interval(0));
}

TEST_CASE("a rounding writer's values may lie beyond their bucket", "[histogram]") {
  Histogram h;
  h.edges = {1, 2, 3};
  h.counts = {1, 1};
  h.slack = 0.25;
  const auto above = [&](double x) { return table_of(h).at_or_above(magnitude_of(x)); };
  CHECK(above(1.75) == Interval(1, 2));
  CHECK(above(2.25) == Interval(0, 2));
  CHECK(above(0.75) == Interval(2));
}

TEST_CASE("many histograms with the same buckets are one table of as many spans", "[histogram]") {
  const std::vector<double> edges = {0x1p-30, 0x1p-29, 0x1p-28, 0x1p-27};
  BoundedTable sum;
  for (int i = 1; i < 50; ++i) {
    const double step = 0x1p-36 * i;
    sum.merge(table_of(
        count(edges, {0x1p-30 + step, 0x1p-30 + step, 0x1p-29, 0x1p-28 + step, 0x1p-28 + step})));
  }
  CHECK(sum.total() == 49 * 5);
  CHECK(sum.spans().size() == 3);
}

TEST_CASE("histograms that are none are refused", "[histogram][table]") {
  struct Row {
    const char* wanted;
    std::vector<double> edges, counts;
    std::optional<double> min = {}, max = {}, total = {};
  };
  const std::vector<Row> rows = {
      {"ascend", {0, 2, 1}, {1, 1}},
      {"ascend", {0, kNan, 1}, {1, 1}},
      {"one edge more", {0, 1}, {1, 1}},
      {"whole number", {0, 1}, {1.5}},
      {"whole number", {0, 1}, {-1}},
      {"whole number", {0, 1}, {kNan}},
      {"2^53", {0, 1}, {0x1p54}},
      {"sum", {0, 1, 2}, {0x1p53, 0x1p53}},
      {"the buckets hold", {0, 1}, {3}, {}, {}, 2},
      {"outside of them", {0, 1}, {3}, 2.0, 3.0},
      {"inside of them", {0, 1}, {3}, 0.25, 0.5, 4},
      {"no occupied bucket", {0, 1, 2}, {0, 3}, 0.5, 1.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.wanted);
    const Histogram h{row.edges, row.counts, true, row.min, row.max, row.total};
    try {
      table_of(h);
      FAIL("not refused");
    } catch (const std::invalid_argument& error) {
      CHECK_THAT(error.what(), Catch::Contains(row.wanted));
    }
  }
}

TEST_CASE("wide buckets around zero hide underflow", "[histogram][table]") {
  const std::vector<double> values = log_normal(1, -10, 2, false);
  CHECK(analyzers::readers::common::hides_underflow(
      table_of(count(linear_edges(values, 30), values))));
  CHECK_FALSE(
      analyzers::readers::common::hides_underflow(table_of(count(default_edges(), values))));
  std::vector<double> halves = {-1, 0, 1};  // neither bucket holds zero and others
  CHECK(analyzers::readers::common::hides_underflow(table_of(count(halves, values))));
}

}  // namespace test_histogram
