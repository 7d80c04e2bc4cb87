// SPDX-License-Identifier: Apache-2.0
// Against brute force: every step, every random number.
#include <bit>
#include <catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "halfscope/table/update/update_what_if.hpp"
#include "table/update_judge.hpp"

namespace test_update_what_if {

using namespace halfscope;

using Integer = boost::multiprecision::int128_t;
using Exact = judge::Arithmetic<Integer, -64>;

#ifdef NDEBUG
constexpr int kOneIn = 1;
#else
constexpr int kOneIn = 17;
#endif

struct Pairs {
  std::vector<float> weights, updates;

  UpdateWhatIf ask(const WhatIfOptions& options = {}) const {
    return what_if(view_of(weights), view_of(updates), options);
  }
};

float random_float(std::mt19937& random, int low, int high, std::uint32_t fraction_mask) {
  const int e = std::uniform_int_distribution(low, high)(random);
  const auto field = static_cast<std::uint32_t>(e + 127) << 23;
  const float x =
      std::bit_cast<float>(field | (static_cast<std::uint32_t>(random()) & fraction_mask));
  return random() % 2 == 0 ? x : -x;
}

/// Weights of a few binades and zeros; updates from `low` to `high` binades above them.
Pairs random_pairs(std::uint32_t seed, int count, int low, int high) {
  constexpr std::uint32_t kMasks[] = {0x7FFFFF, 0x7FE000, 0x7FF000, 0x600000, 0};
  std::mt19937 random(seed);
  Pairs pairs;
  for (int i = 0; i < count; i += kOneIn) {
    const int e = static_cast<int>(random() % 24) - 14;
    const float w = random_float(random, e, e, kMasks[random() % 5]);
    pairs.weights.push_back(random() % 16 == 0 ? 0.0f : w);
    pairs.updates.push_back(random_float(random, e + low, e + high, kMasks[random() % 5]));
  }
  return pairs;
}

const oracle::Layout& f16() { return oracle::layout("binary16"); }
Integer round16(const Integer& x) { return Exact::nearest(f16(), x).value(); }

/// Differs after N of Kahan's steps, each operation rounded. What overflows has moved.
bool kahan_moves(float weight, float update, int steps) {
  const Integer start = round16(Exact::of(weight)), u = round16(Exact::of(update));
  Integer w = start, c = 0;
  for (int i = 0; i < steps; ++i) {
    const Integer y = round16(u - c);
    const std::optional<Integer> t = Exact::nearest(f16(), w + y);
    if (!t) return true;
    c = round16(round16(*t - w) - y);
    w = *t;
  }
  return w != start;
}

/// Steps until the copy of a binary32 master differs; 0 where the master stops first.
std::uint64_t steps_to_move(float master, float update) {
  const Integer copy = round16(Exact::of(master));
  for (std::uint64_t n = 1;; ++n) {
    const float next = master + update;  // the processor's binary32
    if (next == master) return 0;
    if (Exact::nearest(f16(), Exact::of(next)) != copy) return n;
    master = next;
  }
}

UpdateWhatIf of_one(float w, float u, const WhatIfOptions& options = {}) {
  return Pairs{{w}, {u}}.ask(options);
}

struct Chance {
  std::uint64_t above = 0, truncated = 0;
};

/// Of the R in [0, 2^r), how many move the weight: up if the discarded fraction is above R / 2^r,
/// and by truncation after R was added below the last place.
Chance chance(float weight, float update, int r) {
  const Integer w = round16(Exact::of(weight)), sum = w + Exact::of(update);
  const Integer one = Integer(1) << r;
  if (sum == 0) return {std::uint64_t{1} << r, std::uint64_t{1} << r};
  const Integer magnitude = abs(sum);
  const int e = std::max(Exact::log2(sum), f16().min_exponent());
  const Integer step = Integer(1) << (e - 10 + 64);
  const Integer kept = magnitude / step, rest = magnitude % step;
  const auto moves = [&](bool up) {
    return (sum < 0 ? -1 : 1) * (kept + (up ? 1 : 0)) * step != w;
  };
  Chance result;
  for (Integer random = 0; random < one; ++random) {
    result.above += moves(rest * one > random * step) ? 1 : 0;
    result.truncated += moves(rest * one / step + random >= one) ? 1 : 0;
  }
  return result;
}

TEST_CASE("what if: stochastic rounding, every random number") {
  for (const int bits : {1, 3, 8}) {
    const Pairs pairs = random_pairs(1, 3000, -20, 2);
    std::uint64_t moves = 0, never = 0, never_truncated = 0;
    for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
      const Chance c = chance(pairs.weights[i], pairs.updates[i], bits);
      moves += c.above;
      never += c.above == 0 ? 1 : 0;
      never_truncated += c.truncated == 0 ? 1 : 0;
    }
    const StochasticMoves s = pairs.ask({.random_bits = {bits}}).stochastic.at(0);
    CHECK(s.moves_low == moves);
    CHECK(s.moves_high == 0);
    CHECK(s.never == never);
    CHECK(s.never_truncated == never_truncated);
    CHECK(never + never_truncated > 0);
  }
}

TEST_CASE("what if: stochastic rounding by hand") {
  const auto moves = [](float w, float u, int bits) {
    return of_one(w, u, {.random_bits = {bits}}).stochastic.at(0);
  };
  CHECK(moves(1, 0x1p-12f, 2).moves_low == 1);   // a quarter of the step
  CHECK(moves(1, -0x1p-13f, 2).moves_low == 1);  // of half the step
  CHECK(moves(1, 0x1p-10f, 32).moves_low == std::uint64_t{1} << 32);
  CHECK(moves(1, 0x1p-10f, 32).expected_moves() == 1);
  CHECK(moves(1, 0x1p-13f, 2).never == 0);  // 1/8 is above R = 0
  CHECK(moves(1, 0x1p-13f, 2).never_truncated == 1);
  CHECK(moves(1, -0x1p-14f, 2).never == 1);
  CHECK(moves(1, -0x1p-14f, 2).never_truncated == 0);
  CHECK(moves(1, 0x1p-42f, 32).moves_low == 1);   // exactly 1 in 2^32
  CHECK(moves(1, 0x1p-100f, 32).moves_low == 1);  // and far below: still not never
  CHECK(moves(1, -0x1p-100f, 32).never == 1);
}

TEST_CASE("what if: stochastic moves beyond 64 bits add") {
  StochasticMoves a{.random_bits = 32, .moves_low = ~std::uint64_t{0}, .never = 3};
  a += a;
  CHECK(a.moves_high == 1);
  CHECK(a.moves_low == ~std::uint64_t{0} - 1);
  CHECK(a.expected_moves() == 0x1p33);
  CHECK_THROWS_AS((a += StochasticMoves{.random_bits = 8}), std::invalid_argument);
}

TEST_CASE("what if: Kahan's sum, every step") {
  for (const int steps : {1, 2, 7, 100, 1000}) {
    const Pairs pairs = random_pairs(2, steps == 1000 ? 400 : 3000, -22, 0);
    std::uint64_t moved = 0, plain = 0;
    for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
      const Integer w = round16(Exact::of(pairs.weights[i]));
      moved += kahan_moves(pairs.weights[i], pairs.updates[i], steps) ? 1 : 0;
      plain += round16(w + round16(Exact::of(pairs.updates[i]))) != w ? 1 : 0;
    }
    const KahanMoves k = pairs.ask({.kahan_steps = static_cast<std::uint64_t>(steps)}).kahan;
    INFO(steps);
    CHECK(k.moved == moved);
    CHECK(k.moved_plain == plain);
    if (steps > 1) CHECK(moved > plain);
  }
}

TEST_CASE("what if: the first move of the copy of a master, every step") {
  const Pairs pairs = random_pairs(3, 20000, -22, 1);
  std::map<int, std::uint64_t> first;
  std::uint64_t never = 0;
  for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
    const std::uint64_t n = steps_to_move(pairs.weights[i], pairs.updates[i]);
    if (n == 0) {
      ++never;
    } else {
      ++first[static_cast<int>(std::bit_width(n)) - 1];
    }
  }
  const UpdateWhatIf answer = pairs.ask();
  CHECK(answer.first_move == first);
  CHECK(answer.master_never == never);
}

TEST_CASE("what if: the sources' first moves, at the fifth +1e-4 and the third -1e-4") {
  CHECK(of_one(1, 1e-4f).first_move == std::map<int, std::uint64_t>{{2, 1}});
  CHECK(of_one(1, -1e-4f).first_move == std::map<int, std::uint64_t>{{1, 1}});
  CHECK(of_one(1, 0x1p-25f).master_never == 1);
  CHECK(of_one(0x1p-149f, -0x1p-149f).master_never == 1);  // stops at -2^-125, far from -2^-25
  CHECK(of_one(0x1p-40f, -0x1p-48f).first_move.begin()->first == 23);  // 2^8 to zero, 2^23 beyond
}

TEST_CASE("what if: other learning rates, and bfloat16") {
  const Pairs pairs = random_pairs(4, 4000, -16, 1);
  const UpdateWhatIf answer = pairs.ask({.first_log2_factor = -3, .last_log2_factor = 2});
  const judge::Far in16(oracle::layout("binary16")), in_bf16(oracle::layout("bfloat16"));
  UpdateTable bfloat16;
  std::map<int, UpdateCounts> rates;
  for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
    const double w = double{pairs.weights[i]}, u = double{pairs.updates[i]};
    in_bf16.add(bfloat16, w, u);
    for (int k = -3; k <= 2; ++k) {
      UpdateTable one;
      in16.add(one, w, std::ldexp(u, k));
      rates[k] += one.counts;
    }
  }
  CHECK(answer.bfloat16 == bfloat16.counts);
  CHECK(answer.learning_rate == rates);
}

TEST_CASE("what if: zeros and what is not finite move nothing") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Pairs pairs{{1, 1, kInfinity, NAN, 70000, 1}, {0, -0.0f, 1, 1, 1, NAN}};
  const UpdateWhatIf answer = pairs.ask();
  CHECK(answer.first_move.empty());
  CHECK(answer.master_never == 0);
  CHECK(answer.kahan.moved == 0);
  CHECK(answer.stochastic.at(0).moves_low == 0);
  CHECK(answer.learning_rate.at(0).zero == 2);
  CHECK(answer.learning_rate.at(0).nonfinite == 4);
  CHECK(answer.bfloat16.nonfinite == 3);  // bfloat16 holds 70000
}

TEST_CASE("what if: the same on any number of threads, questions that make no sense") {
  const Pairs pairs = random_pairs(5, 100000, -16, 1);
  const UpdateWhatIf one = pairs.ask({.threads = 1}), three = pairs.ask({.threads = 3});
  CHECK(one.first_move == three.first_move);
  CHECK(one.learning_rate == three.learning_rate);
  CHECK(one.kahan.moved == three.kahan.moved);
  CHECK(one.stochastic.at(2).moves_low == three.stochastic.at(2).moves_low);
  CHECK_THROWS_AS(pairs.ask({.random_bits = {33}}), std::invalid_argument);
  CHECK_THROWS_AS(pairs.ask({.random_bits = {0}}), std::invalid_argument);
  CHECK_THROWS_AS(pairs.ask({.first_log2_factor = 2, .last_log2_factor = 1}),
                  std::invalid_argument);
}

}  // namespace test_update_what_if
