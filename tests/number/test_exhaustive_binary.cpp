// SPDX-License-Identifier: Apache-2.0
// Binary operations of binary16 over all 2^32 pairs, flags included, in six directions.
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include "catch.hpp"
#include "number/fast_judge.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"

namespace test_exhaustive_binary {

using namespace halfscope;

constexpr fast::Direction kFast[] = {fast::Direction::ties_to_even, fast::Direction::ties_to_away,
                                     fast::Direction::toward_zero,  fast::Direction::upward,
                                     fast::Direction::downward,     fast::Direction::to_odd};

/// TestFloat's bits.
template <typename AnyFlags>
constexpr unsigned flag_bits(const AnyFlags& flags) {
  return (flags.inexact ? fast::kInexact : 0U) | (flags.underflow ? fast::kUnderflow : 0U) |
         (flags.overflow ? fast::kOverflow : 0U) |
         (flags.divide_by_zero ? fast::kDivideByZero : 0U) | (flags.invalid ? fast::kInvalid : 0U);
}

fast::Exact fast_add(unsigned a, unsigned b) { return fast::sum(a, b, false); }
fast::Exact fast_subtract(unsigned a, unsigned b) { return fast::sum(a, b, true); }

using Ours = Rounded (*)(Format, std::uint64_t, std::uint64_t, const Modes&);
using Judge = fast::Exact (*)(unsigned, unsigned);

struct Row {
  const char* name;
  Judge judge;
};

constexpr Row kRows[] = {{"add", fast_add},
                         {"subtract", fast_subtract},
                         {"multiply", fast::product},
                         {"divide", fast::quotient},
                         {"remainder", fast::remainder}};  // in the order of judge::kBinary

/// The direction is a constant of the loop, as it is where speed matters to a user.
template <Ours kOurs, Judge kJudge, int kDirection>
[[gnu::flatten]] bool agrees(unsigned a, unsigned b, const fast::Exact& exact) {
  const Modes modes = {.rounding = judge::kDirections[kDirection].mode};
  const Rounded got = kOurs(kBinary16, a, b, modes);
  const fast::Result want = fast::in(kFast[kDirection], exact);
  return got.bits == want.bits && flag_bits(got.flags) == want.flags;
}

/// First operand beside `a` that some direction gets wrong, plus one; 0 when none does.
template <Ours kOurs, Judge kJudge>
std::uint64_t first_wrong_beside(unsigned a) {
  for (unsigned b = 0; b < 1U << 16; ++b) {
    const fast::Exact exact = kJudge(a, b);
    const bool all =
        agrees<kOurs, kJudge, 0>(a, b, exact) && agrees<kOurs, kJudge, 1>(a, b, exact) &&
        agrees<kOurs, kJudge, 2>(a, b, exact) && agrees<kOurs, kJudge, 3>(a, b, exact) &&
        agrees<kOurs, kJudge, 4>(a, b, exact) && agrees<kOurs, kJudge, 5>(a, b, exact);
    if (!all) return std::uint64_t{b} + 1;
  }
  return 0;
}

template <Ours kOurs, Judge kJudge>
void all_pairs(const char* name) {
  const auto start = std::chrono::steady_clock::now();
  const std::string wrong = judge::first_wrong_of(1U << 16, [](std::uint64_t a) -> std::string {
    const std::uint64_t found = first_wrong_beside<kOurs, kJudge>(static_cast<unsigned>(a));
    return found == 0 ? "" : fmt::format("{:#x} {:#x}", a, found - 1);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << fmt::format("{}: 2^32 pairs in six directions, {:.0f} s\n", name, seconds.count());
  REQUIRE(wrong == "");
}

/// The fast judge against the oracle on one pair.
std::string judged_judge(const Row& row, const judge::Binary& op, unsigned a, unsigned b) {
  static const oracle::Layout& half = oracle::layout("binary16");
  const oracle::Outcome outcome =
      op.want(half, oracle::operand(half, a), oracle::operand(half, b), {});
  const fast::Exact exact = row.judge(a, b);
  for (int i = 0; i < 6; ++i) {
    const judge::Direction& direction = judge::kDirections[i];
    const oracle::Result want = oracle::finish(half, outcome, {.rule = direction.direction});
    const fast::Result got = fast::in(kFast[i], exact);
    if (got.bits == want.bits && got.flags == flag_bits(want.flags)) continue;
    return fmt::format("{} {:#x} {:#x} {}: fast {:#x} {:#x}, oracle {}", row.name, a, b,
                       direction.name, got.bits, got.flags, judge::describe_result(want));
  }
  return {};
}

TEST_CASE("the judge of all pairs is the oracle: hard pairs, and mixed ones",
          "[number][arithmetic][oracle]") {
  const std::vector<std::uint64_t> sample = samples::structured(kBinary16);
  for (std::size_t k = 0; k < std::size(kRows); ++k) {
    const judge::Binary& op = judge::kBinary[k];
    REQUIRE(std::string(op.name) == kRows[k].name);
    REQUIRE(judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
              const auto a = static_cast<unsigned>(sample[i]);
              std::string wrong;
              for (std::uint64_t j = 0; j < sample.size() && wrong.empty(); ++j) {
                const auto random = static_cast<unsigned>(samples::mixed(i * sample.size() + j));
                wrong = judged_judge(kRows[k], op, a, static_cast<unsigned>(sample[j]));
                wrong += judged_judge(kRows[k], op, random & 0xFFFF, random >> 16);
              }
              return wrong;
            }) == "");
  }
}

TEST_CASE("add: all 2^32 binary16 pairs, six directions", "[number][arithmetic][.exhaustive]") {
  all_pairs<add, fast_add>("add");
}

TEST_CASE("subtract: all 2^32 binary16 pairs, six directions",
          "[number][arithmetic][.exhaustive]") {
  all_pairs<subtract, fast_subtract>("subtract");
}

TEST_CASE("multiply: all 2^32 binary16 pairs, six directions",
          "[number][arithmetic][.exhaustive]") {
  all_pairs<multiply, fast::product>("multiply");
}

TEST_CASE("divide: all 2^32 binary16 pairs, six directions", "[number][arithmetic][.exhaustive]") {
  all_pairs<divide, fast::quotient>("divide");
}

TEST_CASE("remainder: all 2^32 binary16 pairs, six directions",
          "[number][arithmetic][.exhaustive]") {
  all_pairs<remainder, fast::remainder>("remainder");
}

}  // namespace test_exhaustive_binary
