// SPDX-License-Identifier: Apache-2.0
// Reductions against their judge, the figures of a known trial, and sums that add.
#include "halfscope/reduction/reduce.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "halfscope/array/array.hpp"
#include "judge.hpp"
#include "vector_target.hpp"

namespace test_reduce {

using namespace halfscope;
using namespace halfscope::reduction;

using Ranks = std::vector<std::vector<float>>;

std::vector<std::span<const float>> spans(const Ranks& ranks) {
  return {ranks.begin(), ranks.end()};
}

/// Values of one binade, of many, near the format's ends, and those that are none.
float addend(std::mt19937_64& random, Format f, int kind) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
  const float x =
      sign * static_cast<float>(1.0 + std::ldexp(static_cast<double>(random() >> 11), -53));
  const int quantum = f.min_quantum_exponent();
  switch (kind) {
    case 0: return std::ldexp(x, between(-2, 2));
    case 1: return std::ldexp(x, between(quantum - 2, f.emax));
    case 2: return std::ldexp(x, between(quantum - 1, quantum + f.precision + 2));
    case 3: return std::ldexp(std::fabs(x), between(f.emax - 3, f.emax - 1));
    default: break;
  }
  constexpr float kRare[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
  const auto at = random() % 64;
  return at < 4 ? kRare[at] : at < 24 ? 0.0f : std::ldexp(x, between(-1, 1));
}

Ranks ranks_of(Format f, int kind, std::size_t ranks, std::size_t n) {
  std::mt19937_64 random(ranks * 1000 + n);
  Ranks out(ranks, std::vector<float>(n));
  for (auto& rank : out) {
    for (float& x : rank) x = addend(random, f, kind);
  }
  return out;
}

/// What the judge says of a reduction.
struct Totals {
  Facts facts;  // counts alone
  judge::Rational squared_error = 0, squared_exact = 0, ulp = 0, squared_ulp = 0;
  std::vector<std::uint64_t> bits;
};

void add_element(Totals& t, const judge::Adder& adder, const judge::Sum& s) {
  t.bits.push_back(s.bits);
  if (s.nonfinite) {
    ++t.facts.nonfinite;
    return;
  }
  ++t.facts.elements;
  t.facts.flushed += s.flushed;
  t.facts.additions += s.additions;
  t.facts.lost += s.lost;
  if (!adder.finite(s.bits)) {
    ++t.facts.overflow;
    return;
  }
  const judge::Rational error = adder.value(s.bits) - s.exact;
  const judge::Rational computed = abs(adder.value(s.bits)), exact = abs(s.exact);
  const judge::Rational ulps = error / adder.ulp(computed > exact ? computed : exact);
  t.squared_error += error * error;
  t.squared_exact += s.exact * s.exact;
  t.ulp += ulps;
  t.squared_ulp += ulps * ulps;
}

Totals judged(Format f, std::string_view name, const Ranks& ranks, Order order) {
  const judge::Adder adder(f, name);
  Totals totals;
  const std::size_t n = ranks[0].size(), chunk = (n + ranks.size() - 1) / ranks.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<float> addends;
    for (const auto& rank : ranks) addends.push_back(rank[i]);
    const std::size_t start = (i / chunk + 1) % ranks.size();
    add_element(totals, adder, judge::sum(adder, addends, order, start));
  }
  return totals;
}

bool near(double value, const judge::Rational& want) {
  const double expected = want.convert_to<double>();
  return std::fabs(value - expected) <= 1e-12 * std::fabs(expected) + 1e-300;
}

bool same_counts(const Facts& a, const Facts& b) {
  return a.elements == b.elements && a.nonfinite == b.nonfinite && a.flushed == b.flushed &&
         a.additions == b.additions && a.lost == b.lost && a.overflow == b.overflow;
}

std::uint64_t encoding(Format f, float x) {
  return convert(f, kBinary32, std::bit_cast<std::uint32_t>(x)).bits;
}

/// Empty if everything agrees.
std::string difference(Format f, const Totals& want, const Facts& facts,
                       const std::vector<float>& results, bool one_sign) {
  if (!same_counts(facts, want.facts)) return "counts";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool nan = std::isnan(results[i]) && want.bits[i] % f.sign_mask() > f.infinity();
    if (!nan && encoding(f, results[i]) != want.bits[i]) return "result " + std::to_string(i);
  }
  if (!near(facts.squared_error.value(), want.squared_error)) return "squared error";
  if (!near(facts.squared_exact.value(), want.squared_exact)) return "squared exact";
  if (!near(facts.squared_error_ulp.value(), want.squared_ulp)) return "squared ulps";
  if (one_sign && !near(facts.error_ulp.value(), want.ulp)) return "ulps";
  return "";
}

TEST_CASE("reductions equal one addition after the other", "[reduction][oracle]") {
  constexpr std::string_view kNames[] = {"binary16", "bfloat16", "binary32", "tf32", "e5m2"};
  for (const std::string_view name : kNames) {
    const Format f = find_format(name)->format;
    for (const NamedOrder& order : kOrders) {
      for (const std::size_t ranks : {1, 2, 3, 6, 8, 21}) {
        for (int kind = 0; kind < 5; ++kind) {
          const Ranks addends = ranks_of(f, kind, ranks, ranks == 3 ? 1100 : 61);
          std::vector<float> results(addends[0].size());
          const Facts facts = reduce(f, spans(addends), {.order = order.order}, results);
          const Totals want = judged(f, name, addends, order.order);
          INFO(name << ", " << order.name << ", " << ranks << " ranks, kind " << kind);
          REQUIRE(difference(f, want, facts, results, kind == 0 || kind == 3) == "");
        }
      }
    }
  }
}

TEST_CASE("one long sum equals a reduction of one element", "[reduction]") {
  for (const Format f : {kBinary16, kBfloat16, kBinary32, kFloat8E5M2}) {
    for (const NamedOrder& order : kOrders) {
      for (int kind = 0; kind < 5; ++kind) {
        const Ranks addends = ranks_of(f, kind, 300, 1);
        std::vector<float> flat, result(1);
        for (const auto& rank : addends) flat.push_back(rank[0]);
        const Facts want = reduce(f, spans(addends), {.order = order.order}, result);
        const LongSum s = sum(f, flat, order.order);
        REQUIRE(same_counts(s.facts, want));
        REQUIRE((s.result == result[0] || std::isnan(result[0])));
        REQUIRE(s.facts.squared_error.value() == want.squared_error.value());
        REQUIRE(s.facts.error_ulp.value() == want.error_ulp.value());
      }
    }
  }
}

/// Addends that are given `piece` at a time.
AddendsFrom pieces_of(const std::vector<float>& addends, std::size_t n, std::size_t piece) {
  return [&addends, n, piece](std::size_t i) {
    const std::size_t end = std::min((i / piece + 1) * piece * n, addends.size());
    return std::span(addends).subspan(i * n, end - i * n);
  };
}

/// Sums whose additions mostly change nothing: they are counted in pieces.
std::vector<std::vector<float>> long_addends() {
  std::mt19937_64 random(7);
  std::vector<std::vector<float>> out(9, std::vector<float>(10'000));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < out[0].size(); ++i) {
    const float x = static_cast<float>(random() % 1024) / 1024;
    out[0][i] = 1;
    out[1][i] = x * x;
    out[2][i] = x - 0.5f;
    out[3][i] = i == 0 ? 1 : 0x1p-30f * x;  // of these binary16 keeps none
    out[4][i] = i < 5000 ? -0.0f : i < 9000 ? 0 : x;
    out[5][i] = i % 3000 == 2999 ? 3e4f : x;  // infinite in binary16
    out[6][i] = i < 4000 ? 1 : i < 8000 ? -1 : 0;
    out[7][i] = i == 5000 ? kInfinity : 1;
    out[8][i] = i < 3000 ? 1 : i == 6000 ? -kInfinity : i == 4000 ? kInfinity : -0.0f;
  }
  return out;
}

TEST_CASE("a long sum in pieces is the sum addition by addition", "[reduction][oracle]") {
  const std::pair<Format, const char*> formats[] = {{kBinary16, "binary16"},
                                                    {kBfloat16, "bfloat16"}};
  for (const auto& [f, name] : formats) {
    const judge::Adder adder(f, name);
    for (const std::vector<float>& addends : long_addends()) {
      const judge::Sum want = judge::sum(adder, addends, Order::sequential, 0);
      for (const std::size_t piece : {10'000, 2048, 999, 1}) {
        const LongSum s = sum(f, addends.size(), pieces_of(addends, 1, piece), Order::sequential);
        REQUIRE(s.facts.nonfinite == (want.nonfinite ? 1 : 0));
        REQUIRE(s.facts.lost == (want.nonfinite ? 0 : want.lost));
        REQUIRE(s.facts.flushed == (want.nonfinite ? 0 : want.flushed));
        REQUIRE(s.facts.overflow == (want.nonfinite || adder.finite(want.bits) ? 0 : 1));
        if (want.nonfinite) continue;
        REQUIRE(convert(f, kBinary32, std::bit_cast<std::uint32_t>(s.result)).bits == want.bits);
        if (s.facts.overflow == 0) REQUIRE(judge::Rational(s.exact) == want.exact);
      }
    }
  }
}

TEST_CASE("sums of addends that are read have the bits of those that are held", "[reduction]") {
  constexpr std::size_t kRanks = 37, kElements = 1500;
  const Ranks ranks = ranks_of(kBinary16, 4, kRanks, kElements);
  std::vector<float> flat;
  for (const auto& rank : ranks) flat.insert(flat.end(), rank.begin(), rank.end());
  for (const NamedOrder& order : kOrders) {
    const Facts want = reduce(kBinary16, spans(ranks), {.order = order.order});
    for (const std::size_t piece : {37, 5, 1}) {
      const Facts facts = reduce(kBinary16, kElements, kRanks, pieces_of(flat, kElements, piece),
                                 {.order = order.order});
      REQUIRE(same_counts(facts, want));
      REQUIRE(facts.squared_error.value() == want.squared_error.value());
      REQUIRE(facts.error_ulp.value() == want.error_ulp.value());
    }
    const std::vector<float> first(flat.begin(), flat.begin() + 4096);
    const LongSum held = sum(kBfloat16, first, order.order);
    const LongSum read = sum(kBfloat16, first.size(), pieces_of(first, 1, 100), order.order);
    REQUIRE(std::bit_cast<std::uint32_t>(read.result) == std::bit_cast<std::uint32_t>(held.result));
    REQUIRE(same_counts(read.facts, held.facts));
  }
}

TEST_CASE("ones stop at 2^p", "[reduction][table]") {
  const std::vector<float> ones(4096, 1.0f);
  const LongSum half = sum(kBinary16, ones);
  REQUIRE(half.result == 2048);
  REQUIRE(half.exact == 4096);
  REQUIRE(half.stalled_at == 2048);
  REQUIRE(half.facts.lost == 2048);
  REQUIRE(half.facts.relative_l2() == 0.5);
  REQUIRE(half.facts.mean_error_ulp() == -512);  // at 4096 an ulp is 4
  REQUIRE(sum(kBfloat16, ones).result == 256);
  REQUIRE(sum(kBinary32, ones).result == 4096);
  REQUIRE_FALSE(sum(kBinary32, ones).stalled_at);
  for (const Order order : {Order::tree, Order::pairwise}) {
    REQUIRE(sum(kBinary16, ones, order).result == 4096);
    REQUIRE_FALSE(sum(kBinary16, ones, order).stalled_at);
  }
}

TEST_CASE("where a sum stalls", "[reduction][table]") {
  const auto at = [](std::vector<float> x) { return sum(kBfloat16, x).stalled_at; };
  REQUIRE(at({1, 1, 0x1p-9f, 0x1p-9f}) == 2);
  REQUIRE(at({1, 1, 0, 0x1p-9f}) == 2);             // from there on nothing changes
  REQUIRE(at({1, 0x1p-9f, 1, 1}) == std::nullopt);  // the last one changes it
  REQUIRE(at({1, 1, 0, 0}) == std::nullopt);        // nothing to lose
  REQUIRE(at({0x1p127f, 0x1p127f, 1, 1}) == std::nullopt);
}

TEST_CASE("overflow is counted where it happens", "[reduction][table]") {
  const auto facts = [](std::vector<float> x) { return sum(kBinary16, x).facts; };
  REQUIRE(facts({65504, 16, 1}).overflow == 1);
  REQUIRE(facts({65504, 15, 1}).overflow == 0);
  REQUIRE(facts({65520, 1, 1}).overflow == 1);  // by rounding the addend
  REQUIRE(facts({std::numeric_limits<float>::infinity(), 1}).nonfinite == 1);
  REQUIRE(facts({std::numeric_limits<float>::infinity(), 1}).elements == 0);
}

TEST_CASE("facts do not depend on threads, vectors or order of merging", "[reduction]") {
  const Ranks addends = ranks_of(kBfloat16, 4, 5, 40000);
  const auto totals = [](const Facts& f) {
    return std::vector<double>{f.squared_error.value(), f.squared_exact.value(),
                               f.error_ulp.value(), f.squared_error_ulp.value()};
  };
  const Facts want = reduce(kBfloat16, spans(addends), {.order = Order::tree, .threads = 1});
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const int threads : {0, 1, 2, 3}) {
      const Facts f = reduce(kBfloat16, spans(addends), {.order = Order::tree, .threads = threads});
      INFO(target << ", " << threads << " threads");
      REQUIRE(same_counts(f, want));
      REQUIRE(totals(f) == totals(want));
    }
  }
  const auto part = [&](std::size_t first, std::size_t n) {  // cut at a block
    std::vector<std::span<const float>> cut;
    for (const auto& rank : addends) cut.push_back(std::span(rank).subspan(first, n));
    return reduce(kBfloat16, cut, {.order = Order::tree});
  };
  Facts merged = part(20480, 40000 - 20480);
  merged += part(0, 20480);
  REQUIRE(same_counts(merged, want));
  REQUIRE(totals(merged) == totals(want));
}

TEST_CASE("addends that round to zero are counted", "[reduction][table]") {
  const auto flushed = [](std::vector<float> x) { return sum(kBinary16, x).facts.flushed; };
  REQUIRE(flushed({0x1p-25f, -0x1p-26f, 1, 0}) == 2);
  REQUIRE(flushed({0x1.8p-25f, 0x1p-24f, -0.0f}) == 0);
}

TEST_CASE("refused reductions", "[reduction]") {
  const std::vector<float> a(3), b(4);
  const std::vector<std::span<const float>> uneven = {a, b}, one = {a};
  std::vector<float> results(2);
  REQUIRE_THROWS_AS(reduce(kBinary16, uneven), std::invalid_argument);
  REQUIRE_THROWS_AS(reduce(kBinary16, one, {}, results), std::invalid_argument);
  REQUIRE_THROWS_AS(reduce(kBinary16, {}), std::invalid_argument);
  REQUIRE_THROWS_AS(reduce(kFloat8E4M3, one), std::invalid_argument);
  REQUIRE_THROWS_AS(sum(kBinary64, a), std::invalid_argument);
  REQUIRE_THROWS_AS(sum(kBinary16, {}), std::invalid_argument);
}

Ranks normal_addends(std::size_t ranks, std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> means(n);
  for (float& mean : means) mean = normal(random);
  Ranks addends(ranks, means);
  for (auto& rank : addends) {
    for (float& x : rank) x += normal(random);
  }
  return addends;
}

TEST_CASE("gradients of many ranks in BF16 and FP16", "[reduction]") {
  // Addend r of element i is BF16(m_i + n_ir), both independent and N(0, 1).
  struct Row {
    std::size_t ranks;
    double lost, bfloat16, binary16;
  };
  for (const Row& row : {Row{96, 0.044, 0.0095, 0.0012}, Row{384, 0.186, 0.027, 0.0024},
                         Row{1024, 0.445, 0.34, 0.0038}}) {
    Facts bf16, fp16;
    for (int part = 0; part < 8; ++part) {
      Ranks addends = normal_addends(row.ranks, 8192, static_cast<unsigned>(part));
      bf16 += reduce(kBfloat16, spans(addends));
      for (auto& rank : addends) quantise(kBfloat16, rank);
      fp16 += reduce(kBinary16, spans(addends));
    }
    INFO(row.ranks << " ranks: " << bf16.lost_share() << " lost, " << bf16.relative_l2()
                   << ", FP16 " << fp16.relative_l2());
    CHECK(std::fabs(bf16.lost_share() - row.lost) < 0.003);
    CHECK(std::fabs(bf16.relative_l2() / row.bfloat16 - 1) < 0.05);
    CHECK(std::fabs(fp16.relative_l2() / row.binary16 - 1) < 0.05);
  }
}

}  // namespace test_reduce
