// SPDX-License-Identifier: Apache-2.0
// Plain SGD's updates, fast: the whole table against the judge where the arithmetic has edges.
#include <catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "halfscope/table/update/update_table.hpp"
#include "table/update_judge.hpp"

namespace test_update_sgd {

using namespace halfscope;

#ifdef NDEBUG
constexpr std::size_t kPairs = 12000;
#else
constexpr std::size_t kPairs = 1500;
#endif

/// Numbers of binary32 at the edges of its arithmetic and of the formats of weights.
class Edges {
 public:
  explicit Edges(std::uint32_t seed) : random_(seed) {}

  /// About 2^exponent: powers of two, their neighbours, ties of both formats and their neighbours.
  float number(int exponent) {
    static constexpr double kSignificands[] = {
        1,           1 + 0x1p-23, 2 - 0x1p-23,          1 + 0x1p-10, 1 + 0x1p-11,
        1.5,         1 + 0x1p-8,  1 + 0x1p-7 + 0x1p-8,  2 - 0x1p-10, 1 + 0x1p-10 + 0x1p-11,
        2 - 0x1p-11, 2 - 0x1p-8,  1 + 0x1p-11 + 0x1p-23};
    const std::size_t k = random_() % (std::size(kSignificands) + 3);
    double x = 0;
    if (k < std::size(kSignificands)) {
      x = kSignificands[k];
    } else {
      const int bits = k == std::size(kSignificands) ? 10 : 23;
      x = 1 + std::ldexp(static_cast<double>(random_() >> (32 - bits)), -bits);
    }
    return static_cast<float>(std::ldexp(random_() % 2 == 0 ? x : -x, exponent));
  }
  /// Anything: every exponent from the subnormals to infinity, zeros, NaN.
  float any() {
    static constexpr float kSpecial[] = {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(),
                                         std::numeric_limits<float>::infinity(),
                                         -std::numeric_limits<float>::infinity()};
    if (random_() % 16 == 0) return kSpecial[random_() % std::size(kSpecial)];
    return number(between(-152, 127));
  }
  int between(int first, int last) {
    return first + static_cast<int>(random_() % static_cast<std::uint32_t>(last - first + 1));
  }

 private:
  std::mt19937 random_;
};

struct Pairs {
  std::vector<float> weights, gradients;
};

/// Half of the updates near their weight, where it may move or not; the rest anywhere.
Pairs pairs_for(double lr, double scale, std::uint32_t seed, std::size_t n) {
  Edges edges(seed);
  const int to_gradient = std::ilogb(scale) - std::ilogb(lr);
  Pairs pairs;
  for (std::size_t i = 0; i < n; ++i) {
    const int e = edges.between(-27, 15);
    const bool is_near = i % 2 == 0;
    pairs.weights.push_back(is_near ? edges.number(e) : edges.any());
    pairs.gradients.push_back(is_near ? edges.number(e + edges.between(-16, 3) + to_gradient)
                                      : edges.any());
  }
  return pairs;
}

TEST_CASE("updates: SGD at the edges of the arithmetic, fast as one by one", "[oracle]") {
  const std::pair<Format, const char*> formats[] = {{kBinary16, "binary16"},
                                                    {kBfloat16, "bfloat16"}};
  std::uint32_t seed = 1;
  for (const auto& [format, name] : formats) {
    const judge::Far judge(oracle::layout(name));
    for (const double lr : {1.0, 0.1, -3e-4, 0x1.8p-12, 0x1.23p-140, 0x1.fffffep+100}) {
      std::uint64_t applied = 0;
      for (const double scale : {1.0, 1024.0, 0x1p-40, 1000.0}) {
        const Pairs p = pairs_for(lr, scale, ++seed, kPairs / 24 + 7);
        UpdateTable expected;
        for (std::size_t i = 0; i < p.weights.size(); ++i) {
          const double g = p.gradients[i];
          const double unscaled =  // by 1000 in binary32, as the processor does
              scale == 1000 ? double{p.gradients[i] / 1000.0f} : g / scale;
          judge.add(expected, p.weights[i], unscaled, static_cast<float>(lr));
        }
        INFO(name << ", lr " << lr << ", scale " << scale);
        applied += expected.counts.half.applied;
        CHECK(count_sgd_updates(view_of(std::span(p.weights)), view_of(std::span(p.gradients)), lr,
                                scale, {.format = format}) == expected);
      }
      CHECK(applied > 0);
    }
  }
}

// RN(u) from the product of 48 bits, not from RN32(u): the product lies just above a tie of
// binary16 that RN32 falls on, and just below one.
TEST_CASE("updates: SGD rounds the exact product to the format once", "[exact]") {
  // (1 + 2^-11 + 2^-23) (1 - 2^-23) = 1 + 2^-11 - 2^-34 - 2^-46: below the tie, and in binary32 on
  // it.
  const float below = 1 + 0x1p-11f + 0x1p-23f, rate = 1 - 0x1p-23f;
  const std::vector<float> weights = {0, 0}, gradients = {-below, -(1 + 0x1p-11f)};
  // RN(u) = 1 in both: errors of 2^-11 and a little less, relative to u, are in [2^-12, 2^-11).
  const UpdateTable table =
      count_sgd_updates(view_of(std::span(weights)), view_of(std::span(gradients)), rate, 1);
  CHECK(table.counts.half == UpdateOutcomes{.applied = 2});
  CHECK(table.errors == std::map<int, std::uint64_t>{{-12, 2}});
  // 3 in the last place: above the tie between 1 + 2^-10 and 1 + 2^-9, which would go to even.
  const judge::Far judge(oracle::layout("binary16"));
  UpdateTable expected;
  const float odd = 1 + 3 * 0x1p-11f + 0x1p-23f;
  judge.add(expected, 1, double{-odd}, rate);
  const std::vector<float> one = {1}, odds = {-odd};
  CHECK(count_sgd_updates(view_of(std::span(one)), view_of(std::span(odds)), rate, 1) == expected);
}

}  // namespace test_update_sgd
