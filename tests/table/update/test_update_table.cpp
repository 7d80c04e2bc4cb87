// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "halfscope/table/update/update_table.hpp"
#include "parallel.hpp"
#include "table/update_judge.hpp"

namespace test_update_table {

using namespace halfscope;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Debug builds, and those under sanitizers, look at one input in so many.
#ifdef NDEBUG
constexpr std::uint32_t kOneIn = 1;
#else
constexpr std::uint32_t kOneIn = 37;
#endif

/// The value of a binary16 encoding, by the oracle's reading of it.
float value16(std::uint32_t bits) {
  const oracle::Layout& f = oracle::layout("binary16");
  const std::uint32_t magnitude = bits & 0x7FFF;
  if (magnitude > f.last()) return magnitude == f.last() + 1 ? kInfinity : NAN;
  const oracle::Dyadic x = oracle::magnitude(f, magnitude);
  const float value = std::ldexp(static_cast<float>(x.significand), x.quantum);
  return (bits & 0x8000) != 0 ? -value : value;
}

struct Pairs {
  std::vector<float> weights, updates;

  void add(float w, float u) {
    weights.push_back(w);
    updates.push_back(u);
  }
  UpdateTable count(const UpdateOptions& options = {}) const {
    return count_updates(view_of(weights), view_of(updates), options);
  }
};

template <typename JudgeType = judge::Near>
UpdateTable judged(const Pairs& pairs, const char* format = "binary16") {
  const JudgeType judge(oracle::layout(format));
  UpdateTable table;
  for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
    judge.add(table, double{pairs.weights[i]}, double{pairs.updates[i]});
  }
  return table;
}

UpdateTable of_one(float w, float u) {
  Pairs pairs;
  pairs.add(w, u);
  return pairs.count();
}

/// Around x: itself and its neighbours in binary32, both signs.
void add_around(Pairs& pairs, float w, float x) {
  for (const float u : {x, std::nextafter(x, 0.0f), std::nextafter(x, kInfinity)}) {
    pairs.add(w, u);
    pairs.add(w, -u);
  }
}

float random_float(std::mt19937& random, int low, int high) {
  const int e = std::uniform_int_distribution(low, high)(random);
  const std::uint32_t kind = random() % 4;
  std::uint32_t fraction = random() & 0x7FFFFF;
  if (kind == 0) fraction &= 0x7FE000;                         // a binary16 number
  if (kind == 1) fraction = (fraction & 0x7FE000) | 0x1000;    // a tie
  if (kind == 2) fraction = random() % 2 == 0 ? 0 : 0x7FFFFF;  // a power of two, the last before
  const float magnitude =
      std::bit_cast<float>(fraction | static_cast<std::uint32_t>(e + 127) << 23);
  return random() % 2 == 0 ? magnitude : -magnitude;
}

TEST_CASE("updates: the sources' example, 1e-4 of 1, is lost in half") {
  for (const float u : {1e-4f, -1e-4f}) {
    const UpdateCounts counts = of_one(1.0f, u).counts;
    CHECK(counts.half == UpdateOutcomes{.swamped = 1});
    CHECK(counts.fused == UpdateOutcomes{.swamped = 1});
    CHECK(counts.rule_2048 == 1);
  }
}

TEST_CASE("updates: fused rounds to binary32 first") {
  const float u = 0x1p-11f + 0x1p-34f;  // 1 + u is a tie of binary16 in binary32, and above it
  const UpdateCounts counts = of_one(1.0f, u).counts;
  CHECK(counts.fused == UpdateOutcomes{.swamped = 1});
  CHECK(counts.half == UpdateOutcomes{.swamped = 1});  // u16 = 2^-11: the tie, too
  CHECK(counts.rule_2048 == 0);                        // 1 < 2048 u
}

TEST_CASE("updates: the five outcomes, by hand") {
  CHECK(of_one(1, 0).counts.zero == 1);
  CHECK(of_one(1, -0.0f).counts.updates() == 0);
  CHECK(of_one(0, 0x1p-25f).counts.half == UpdateOutcomes{.underflow = 1});  // tie to zero
  CHECK(of_one(0, 0x1p-25f).counts.fused == UpdateOutcomes{.swamped = 1});   // no u16 to underflow
  CHECK(of_one(-0.0f, 0x1.8p-25f).counts.half == UpdateOutcomes{.applied = 1});
  CHECK(of_one(1, 0x1p-10f).counts.half == UpdateOutcomes{.exact = 1});
  CHECK(of_one(1, -0x1p-11f).counts.half ==
        UpdateOutcomes{.exact = 1});  // below 1 steps are halves
  CHECK(of_one(1, 0x1.1p-10f).counts.half == UpdateOutcomes{.applied = 1});
  CHECK(of_one(65504, 16).counts.half == UpdateOutcomes{.overflow = 1});  // 65520: tie, up
  CHECK(of_one(65504, 15.99f).counts.half == UpdateOutcomes{.swamped = 1});
  CHECK(of_one(65504, -16).counts.half == UpdateOutcomes{.applied = 1});  // 65488: tie, 65472
  CHECK(of_one(1, 70000).counts.half == UpdateOutcomes{.overflow = 1});
  CHECK(of_one(65520, 1).counts.nonfinite == 1);  // the weight itself
  CHECK(of_one(1, NAN).counts.nonfinite == 1);
  CHECK(of_one(1, -kInfinity).counts.nonfinite == 1);
}

TEST_CASE("updates: ratio, binades and relative error, by hand") {
  const UpdateTable t = of_one(-1.5f, 0x1.2p-9f);  // 1.125 units of 2^-9, two steps of 2^-10
  CHECK(t.cells == std::map<std::pair<int, int>, UpdateCell>{{{0, -9}, {1, 0}}});
  CHECK(t.ratios == std::map<int, UpdateCell>{{-10, {1, 0}}});  // 1.125 / 1.5 < 1
  CHECK(t.errors == std::map<int, std::uint64_t>{{-4, 1}});     // 1/9
  const UpdateTable zero = of_one(0, 0x1.002p-3f);
  CHECK(zero.cells.begin()->first == std::pair{UpdateTable::kZeroWeight, -3});
  CHECK(zero.ratios.empty());
  CHECK(zero.errors == std::map<int, std::uint64_t>{{-12, 1}});  // a tie: 2^-11 / (1 + 2^-11)
}

TEST_CASE("updates: all 65,536 weights, updates of every binade") {
  constexpr int kFirst = -27, kLast = 16;
  constexpr std::uint32_t kFractions[] = {0,        1,        0x400000, 0x001000, 0x000FFF,
                                          0x001001, 0x7FFFFF, 0x7FF000, 0x2AAAAA};
  std::atomic<int> wrong = 0;
  constexpr std::uint32_t kTogether = 256;
  parallel_for(65536 / kTogether, [&](std::uint64_t group) {
    Pairs pairs;
    for (std::uint32_t k = 0; k < kTogether; k += kOneIn) {
      const auto bits = static_cast<std::uint32_t>(group) * kTogether + k;
      for (int e = kFirst; e <= kLast; ++e) {
        const std::uint32_t turn = bits * 7 + static_cast<std::uint32_t>(e - kFirst);
        const std::uint32_t field = static_cast<std::uint32_t>(e + 127) << 23;
        const float u = std::bit_cast<float>(field | kFractions[turn % std::size(kFractions)]);
        pairs.add(value16(bits), (turn / 16) % 2 == 0 ? u : -u);
      }
    }
    if (pairs.count({.threads = 1}) != judged(pairs)) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE("updates: around half the way to the neighbours of every weight") {
  std::atomic<int> wrong = 0;
  parallel_for(64, [&](std::uint64_t group) {
    Pairs pairs;
    for (std::uint32_t bits = static_cast<std::uint32_t>(group); bits < 65536;
         bits += 64 * kOneIn) {
      const float w = value16(bits);
      const int e = std::max((static_cast<int>(bits) >> 10 & 31) - 15, -14);
      add_around(pairs, w, std::ldexp(1.0f, e - 11));
      add_around(pairs, w, std::ldexp(1.0f, e - 12));
      add_around(pairs, w, std::ldexp(1.5f, e - 11));
    }
    if (pairs.count({.threads = 1}) != judged(pairs)) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE("updates: random pairs, weights that are no binary16 numbers") {
  std::mt19937 random(4);
  Pairs pairs;
  for (std::uint32_t i = 0; i < 200000 / kOneIn; ++i) {
    const int e = static_cast<int>(random() % 30) - 15;
    pairs.add(random_float(random, std::max(e - 2, -18), e), random_float(random, e - 14, e + 2));
  }
  CHECK(pairs.count() == judged(pairs));
}

TEST_CASE("updates: bfloat16, and everything binary32 can hold") {
  std::mt19937 random(5);
  for (const char* name : {"bfloat16", "binary16"}) {
    const Format format = find_format(name)->format;
    Pairs pairs;
    for (std::uint32_t i = 0; i < 20000 / kOneIn; ++i) {
      const int e = static_cast<int>(random() % 250) - 124;
      pairs.add(random_float(random, std::max(e - 4, -126), e),
                random_float(random, std::max(-126, e - 11), std::min(e + 2, 127)));
      pairs.add(std::bit_cast<float>(static_cast<std::uint32_t>(random())),
                std::bit_cast<float>(static_cast<std::uint32_t>(random())));
      pairs.add(std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x80FFFFFF)),
                std::bit_cast<float>(static_cast<std::uint32_t>(random() & 0x80FFFFFF)));
    }
    INFO(name);
    CHECK(pairs.count({.format = format}) == judged<judge::Far>(pairs, name));
  }
}

TEST_CASE("updates: errors that binary32 rounds to the update times a power of two") {
  // Found by trying all u of a binade against a few w: the judge says on which side they are.
  const Pairs half{{-0x1.8p-23f, -0x1.8p-23f, -0x1.4p-22f, -0x1.4p-22f},
                   {0x1.ffdffep+13f, 0x1.ffe002p+13f, 0x1.ffdffep+13f, 0x1.ffe002p+13f}};
  CHECK(half.count() == judged(half));
  CHECK(half.count().errors == std::map<int, std::uint64_t>{{-13, 2}, {-12, 2}});
  const Pairs narrow{{0x1.02p-30f, -0x1.fcp-30f, -0x1.02p-29f, 0x1.fcp-28f},
                     {0x1.00401p+0f, 0x1.ff802p+0f, 0x1.ff802p+0f, 0x1.00804p+0f}};
  CHECK(narrow.count({.format = kBfloat16}) == judged<judge::Far>(narrow, "bfloat16"));
}

TEST_CASE("updates: errors below binary32's normal numbers") {
  for (const int e : {-126, -110, -104, -103, -102}) {
    INFO(e);
    Pairs pairs;
    pairs.add(0, std::ldexp(0x1.000002p0f, e));
    CHECK(pairs.count({.format = kBfloat16}).errors == std::map<int, std::uint64_t>{{-24, 1}});
    CHECK(pairs.count({.format = kBfloat16}) == judged<judge::Far>(pairs, "bfloat16"));
  }
}

TEST_CASE("updates: on log-normal data the 2048x rule overstates by percent") {
  std::mt19937_64 random(74);
  std::normal_distribution<double> weight(-5, 1), update(-18.5, 4);
  Pairs pairs;
  for (int i = 0; i < 1 << 18; ++i) {
    const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
    pairs.add(static_cast<float>(std::exp2(weight(random))),
              sign * static_cast<float>(std::exp2(update(random))));
  }
  const UpdateCounts counts = pairs.count().counts;
  const double all = static_cast<double>(counts.updates());
  const double rule = 100 * static_cast<double>(counts.rule_2048) / all;
  const double exact = 100 * static_cast<double>(counts.half.lost()) / all;
  INFO(rule << " % by the rule, " << exact << " % exactly");
  CHECK(rule - exact > 1);
  CHECK(rule - exact < 5);
}

}  // namespace test_update_table
