// SPDX-License-Identifier: Apache-2.0
// Limits of order-of-sum differences against sums in random orders.
#include "analyzers/reduction/order_bound.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/reduction/reduce.hpp"
#include "tests/parallel.hpp"

namespace test_order_bound {

using namespace halfscope;
using namespace halfscope::analyzers::reduction;

using Random = std::mt19937_64;

/// Addends of one sum.
struct Kind {
  std::string_view name;
  std::function<float(Random&)> draw;
};

const Kind kKinds[] = {
    {"uniform", [](Random& r) { return std::uniform_real_distribution<float>(0, 1)(r); }},
    {"magnitudes of normal values",
     [](Random& r) { return std::fabs(std::normal_distribution<float>()(r)); }},
    {"exponential", [](Random& r) { return std::exponential_distribution<float>()(r); }},
    {"normal", [](Random& r) { return std::normal_distribution<float>()(r); }},
    {"Laplace",
     [](Random& r) {
       return std::exponential_distribution<float>()(r) * (r() % 2 == 0 ? 1.0f : -1.0f);
     }},
    {"uniform, both signs",
     [](Random& r) { return std::uniform_real_distribution<float>(-1, 1)(r); }}};

std::vector<float> addends_of(const Kind& kind, Format f, std::size_t length) {
  Random random(length);
  std::vector<float> addends(length);
  for (float& x : addends) x = kind.draw(random);
  if (f != kBinary32) quantise(f, addends);
  return addends;
}

/// Differences of results in pairs of random orders.
struct Seen {
  double largest = 0;
  std::uint64_t exceeding = 0;
};

using Limit = std::function<double(double a, double b)>;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct FastRandom {
  std::uint64_t state = 7;

  std::uint64_t below(std::uint64_t n) {
    std::uint64_t x = state += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return ((x ^ x >> 31) >> 32) * n >> 32;
  }
};

/// 1,024 orders at a time.
void add_pairs(Format f, const std::vector<float>& addends, FastRandom& random, const Limit& limit,
               Seen& seen) {
  constexpr std::size_t kOrders = 1024;
  std::vector<float> order = addends, results(kOrders), places(addends.size() * kOrders);
  for (std::size_t k = 0; k < kOrders; ++k) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.below(i)]);
    }
    for (std::size_t i = 0; i < order.size(); ++i) places[i * kOrders + k] = order[i];
  }
  std::vector<std::span<const float>> spans;
  for (std::size_t i = 0; i < order.size(); ++i) {
    spans.emplace_back(places.data() + i * kOrders, kOrders);
  }
  reduction::reduce(f, spans, {}, results);
  for (std::size_t k = 0; k < kOrders; k += 2) {
    const double a = static_cast<double>(results[k]), b = static_cast<double>(results[k + 1]);
    seen.largest = std::max(seen.largest, std::fabs(a - b));
    if (std::fabs(a - b) > limit(a, b)) ++seen.exceeding;
  }
}

double sum_of_magnitudes(const std::vector<float>& addends) {
  double sum = 0;
  for (const float x : addends) sum += std::fabs(static_cast<double>(x));
  return sum;
}

/// Empty if at most `allowed` of the pairs exceed the limit, and it is no more than 4 times the
/// largest seen, or an ulp.
std::string fault(const Kind& kind, std::string_view format, std::size_t length, std::size_t pairs,
                  std::uint64_t allowed) {
  const Format f = find_format(format)->format;
  const Sums sums = {length, f};
  const std::vector<float> addends = addends_of(kind, f, length);
  const double magnitudes = sum_of_magnitudes(addends);
  const double simulated = sums.few() ? 0 : simulated_limit(f, addends);
  const Limit limit = [&](double a, double b) {
    const double result = std::max(std::fabs(a), std::fabs(b));
    return random_limit(sums, magnitudes, result).value_or(simulated);
  };
  FastRandom random;
  Seen seen;
  for (std::size_t done = 0; done < pairs; done += 512) add_pairs(f, addends, random, limit, seen);
  double exact = 0;
  for (const float x : addends) exact += static_cast<double>(x);
  const double ratio = limit(exact, exact) / seen.largest;
  const std::string what = std::string(kind.name) + ", " + std::string(format) + ", " +
                           std::to_string(length) + ": " + std::to_string(seen.exceeding) +
                           " exceed, limit " + std::to_string(ratio) + " of the largest";
  if (seen.largest > bound_of_every_order(sums, magnitudes)) return what + ", above the bound";
  const bool near = ratio <= 4 || limit(exact, exact) <= std::fabs(exact) * 2 * sums.unit();
  return seen.exceeding <= allowed && near ? "" : what;
}

struct Case {
  const Kind& kind;
  std::string_view format;
  std::size_t length;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Kind& kind : kKinds) {
    for (const std::string_view format : {"binary16", "bfloat16", "binary32"}) {
      for (const std::size_t length : {64, 512, 4096}) out.push_back({kind, format, length});
    }
    out.push_back({kind, "bfloat16", 128});
    out.push_back({kind, "binary16", 1536});
  }
  return out;
}

void check_all(std::size_t pairs, std::uint64_t allowed) {
  const std::vector<Case> all = cases();
  std::vector<std::string> faults(all.size());
  parallel_for(all.size(), [&](std::uint64_t i) {
    faults[i] = fault(all[i].kind, all[i].format, all[i].length, pairs, allowed);
  });
  for (const std::string& found : faults) CHECK(found == "");
}

// 10,240 orders, in pairs.
TEST_CASE("random orders stay below their limit, which is near", "[analyzers][reduction]") {
  check_all(5120, 0);
}

TEST_CASE("a million random orders", "[analyzers][reduction][.exhaustive]") {
  check_all(500224, 2);
}

TEST_CASE("the bound holds for orders made to be bad", "[analyzers][reduction][table]") {
  // Large first: every small one is lost. Small first: none is.
  std::vector<float> addends(1001, 0x1p-12f);
  addends.front() = 1;
  const float large_first = reduction::sum(kBinary16, addends).result;
  std::reverse(addends.begin(), addends.end());
  const float small_first = reduction::sum(kBinary16, addends).result;
  REQUIRE(large_first == 1);
  REQUIRE(small_first > 1.24f);
  const Sums sums = {addends.size(), kBinary16};
  const double magnitudes = sum_of_magnitudes(addends);
  REQUIRE(small_first - large_first < bound_of_every_order(sums, magnitudes));
  REQUIRE(small_first - large_first > *random_limit(sums, magnitudes, 1.25));  // no random order
}

TEST_CASE("limits by hand", "[analyzers][reduction][table]") {
  REQUIRE(bound_of_every_order({3, kBinary16}, 8) == 2 * 2 * 8 * 0x1p-11);
  REQUIRE(bound_of_every_order({1, kBinary16}, 8) == 0);
  REQUIRE(Sums{2047, kBinary16}.few());
  REQUIRE_FALSE(Sums{2048, kBinary16}.few());
  REQUIRE_FALSE(random_limit({256, kBfloat16}, 1, 1));
  REQUIRE(random_limit({3, kBinary16}, 8, 8) == bound_of_every_order({3, kBinary16}, 8));
  REQUIRE(simulated_limit(kBinary16, std::vector<float>(100, 1.0f)) == 0x1p-4);  // an ulp of 100
}

TEST_CASE("verdicts", "[analyzers][reduction][table]") {
  const Sums sums = {100, kBinary16};
  const float infinity = std::numeric_limits<float>::infinity();
  const auto judge = [&](float a, float b, std::vector<float> magnitudes) {
    const std::vector<float> of_a = {1, a}, of_b = {1, b};
    RandomLimit limit(sums);
    return judge_orders(limit, {of_a}, {of_b}, magnitudes);
  };
  const auto verdict = [&](float a, float b, std::vector<float> magnitudes) {
    return judge(a, b, magnitudes).verdict;
  };
  REQUIRE(verdict(1, 1, {}) == Verdict::within);
  REQUIRE(verdict(100, 100.5f, {1, 100}) == Verdict::within);
  REQUIRE(verdict(100, 102, {1, 100}) == Verdict::cannot_tell);
  REQUIRE(verdict(100, 110, {1, 100}) == Verdict::above);
  REQUIRE(verdict(100, 110, {1, 10000}) == Verdict::within);
  REQUIRE(verdict(100, 100.5f, {}) == Verdict::within);  // at least 100 is summed
  REQUIRE(verdict(100, 110, {}) == Verdict::cannot_tell);
  REQUIRE(judge(100, 110, {}).magnitudes_missing);
  REQUIRE_FALSE(judge(100, 102, {1, 100}).magnitudes_missing);
  REQUIRE(judge(100, 110, {1, 100}).worst == 1);
  REQUIRE(verdict(infinity, infinity, {}) == Verdict::within);
  REQUIRE(verdict(infinity, 1, {1, 1}) == Verdict::cannot_tell);
  REQUIRE(judge(infinity, 1, {1, 1}).nonfinite == 1);
  for (const float none : {infinity, -100.0f, 50.0f, std::nanf("")}) {
    INFO(none);
    REQUIRE(verdict(100, 110, {1, none}) == Verdict::cannot_tell);
    REQUIRE(judge(100, 110, {1, none}).unusable == 1);
  }
  REQUIRE_THROWS_AS(judge(1, 1, {1}), std::invalid_argument);
  RandomLimit none({0, kBinary16});
  REQUIRE_THROWS_AS(judge_orders(none, {}, {}), std::invalid_argument);
}

TEST_CASE("results that were rounded to a narrower format", "[analyzers][reduction]") {
  // 16 addends in binary32, both sums saved in binary16: next to each other, and two steps apart.
  const std::vector<float> a = {1000}, b = {1000.5f}, c = {1001}, magnitudes = {1000};
  RandomLimit sums({16, kBinary32});
  REQUIRE(judge_orders(sums, {a}, {b}, magnitudes).verdict == Verdict::above);
  REQUIRE(judge_orders(sums, {a, kBinary16}, {b, kBinary16}, magnitudes).verdict ==
          Verdict::within);
  REQUIRE(judge_orders(sums, {a, kBinary16}, {c, kBinary16}, magnitudes).verdict == Verdict::above);
  REQUIRE(judge_orders(sums, {a, kBinary16}, {b}, magnitudes).verdict == Verdict::above);
}

// K u is 1 or more: the addends are not those that the limit is simulated with.
TEST_CASE("random orders of long sums stay below the limit of the model",
          "[analyzers][reduction]") {
  constexpr std::pair<std::string_view, std::size_t> kLong[] = {
      {"bfloat16", 256}, {"bfloat16", 1024}, {"bfloat16", 4096}, {"binary16", 4096}};
  for (const auto& [format, length] : kLong) {
    const Format f = find_format(format)->format;
    RandomLimit random({length, f});
    for (const Kind& kind : kKinds) {
      const std::vector<float> addends = addends_of(kind, f, length);
      const double magnitudes = sum_of_magnitudes(addends);
      const Limit limit = [&](double a, double b) {
        return *random(magnitudes, std::max(std::fabs(a), std::fabs(b)));
      };
      FastRandom orders;
      Seen seen;
      for (int i = 0; i < 4; ++i) add_pairs(f, addends, orders, limit, seen);
      INFO(kind.name << ", " << format << ", " << length);
      CHECK(seen.exceeding == 0);
      // Uniform values may stall at the same place in every order: then there is no difference.
      if (seen.largest > 0) CHECK(limit(0, 0) <= 12 * seen.largest);
      CHECK(limit(0, 0) < magnitudes);
    }
  }
  CHECK_FALSE(Sums{20000, kBfloat16}.has_random_limit());
  CHECK(Sums{20000, kBinary32}.has_random_limit());
}

}  // namespace test_order_bound
