// SPDX-License-Identifier: Apache-2.0
// Comparisons, the total order, minima and maxima, against the oracle.
#include "halfscope/number/compare.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"
#include "oracle_compare.hpp"

namespace test_compare {

using namespace halfscope;

std::string wrong_comparison(const char* name, bool signaling, const Compared& got, bool want,
                             bool invalid) {
  if (got.result == want && got.flags == Flags{.invalid = invalid}) return {};
  return fmt::format("{}{}: found {} invalid {}, expected {} invalid {}", name,
                     signaling ? " signaling" : " quiet", got.result, got.flags.invalid, want,
                     invalid);
}

/// The four relations, quiet and signaling, with subnormals as they are and as zeros.
std::string judged_relations(const judge::Target& t, std::uint64_t a, std::uint64_t b) {
  using oracle::Relation;
  for (const bool daz : {false, true}) {
    const oracle::Operand x = oracle::operand(t.want, a, daz);
    const oracle::Operand y = oracle::operand(t.want, b, daz);
    const Relation r = oracle::relation(x, y);
    const Modes modes = {.denormals_are_zero = daz};
    for (const bool signaling : {false, true}) {
      const OnNan on_nan = signaling ? OnNan::signaling : OnNan::quiet;
      const bool invalid = oracle::comparison_is_invalid(x, y, signaling);
      std::string wrong = wrong_comparison("equal", signaling, equal(t.ours, a, b, on_nan, modes),
                                           r == Relation::equal, invalid);
      wrong += wrong_comparison("less", signaling, less(t.ours, a, b, on_nan, modes),
                                r == Relation::less, invalid);
      wrong += wrong_comparison("less_equal", signaling, less_equal(t.ours, a, b, on_nan, modes),
                                r == Relation::less || r == Relation::equal, invalid);
      if (!wrong.empty()) return wrong + (daz ? " daz" : "");
    }
  }
  return {};
}

/// What modes do not touch, and what is meant where nothing is said.
std::string judged_without_modes(const judge::Target& t, std::uint64_t a, std::uint64_t b) {
  using oracle::Relation;
  const oracle::Operand x = oracle::operand(t.want, a);
  const oracle::Operand y = oracle::operand(t.want, b);
  const Relation r = oracle::relation(x, y);
  const bool quiet = oracle::comparison_is_invalid(x, y, false);
  const bool signaling = oracle::comparison_is_invalid(x, y, true);
  std::string wrong = wrong_comparison("unordered", false, unordered(t.ours, a, b),
                                       r == Relation::unordered, quiet);
  wrong +=
      wrong_comparison("equal by default", false, equal(t.ours, a, b), r == Relation::equal, quiet);
  wrong +=
      wrong_comparison("less by default", true, less(t.ours, a, b), r == Relation::less, signaling);
  wrong += wrong_comparison("less_equal by default", true, less_equal(t.ours, a, b),
                            r == Relation::less || r == Relation::equal, signaling);
  if (total_order(t.ours, a, b) != oracle::total_order(x, y)) wrong += "total_order";
  return wrong;
}

struct Extreme {
  const char* name;
  Rounded (*ours)(Format, std::uint64_t, std::uint64_t, const Modes&);
  bool larger;
  oracle::BesideNan beside_nan;
};

constexpr Extreme kExtremes[] = {
    {"minimum", minimum, false, oracle::BesideNan::nan},
    {"maximum", maximum, true, oracle::BesideNan::nan},
    {"minimum_number", minimum_number, false, oracle::BesideNan::number},
    {"maximum_number", maximum_number, true, oracle::BesideNan::number},
    {"min_num", min_num, false, oracle::BesideNan::number_if_quiet},
    {"max_num", max_num, true, oracle::BesideNan::number_if_quiet},
};

std::string judged_extremes(const judge::Target& t, std::uint64_t a, std::uint64_t b) {
  for (const Extreme& op : kExtremes) {
    const std::string wrong = judge::judged(
        t, t.want, judge::Bits<2>{a, b}, {.flush = false},
        [&](const judge::Operands<2>& x, oracle::Precise) {
          return oracle::extreme(t.want, x[0], x[1], op.larger, op.beside_nan);
        },
        [&](const judge::Bits<2>& x, const Modes& modes) {
          return op.ours(t.ours, x[0], x[1], modes);
        });
    if (!wrong.empty()) return fmt::format("{} {}", op.name, wrong);
  }
  return {};
}

/// All pairs of formats of 8 bits and fewer; of the others each structured encoding with every
/// third.
template <typename Judge>
void for_every_pair(const Judge& judge_one) {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(t.name);
    std::vector<std::uint64_t> all = samples::structured(t.ours);
    if (t.ours.width <= 8) {
      all.clear();
      for (std::uint64_t a = 0; a <= 2 * t.ours.magnitude_mask() + 1; ++a) all.push_back(a);
    }
    const std::uint64_t step = t.ours.width <= 8 ? 1 : 3;
    REQUIRE(judge::first_wrong_of(all.size(), [&](std::uint64_t i) {
              std::string wrong;
              for (std::uint64_t j = i % step; j < all.size() && wrong.empty(); j += step) {
                wrong = judge_one(t, all[i], all[j]);
                if (!wrong.empty()) wrong += fmt::format(" of {:#x} {:#x}", all[i], all[j]);
              }
              return wrong;
            }) == "");
  }
}

TEST_CASE(
    "comparisons, quiet and signaling, of all pairs of small formats and hard pairs of others",
    "[number][compare][oracle]") {
  for_every_pair(judged_relations);
}

TEST_CASE("unordered, total_order and the comparisons' defaults", "[number][compare][oracle]") {
  for_every_pair(judged_without_modes);
}

TEST_CASE("minima and maxima, of 754-2019 and of 754-2008", "[number][compare][oracle]") {
  for_every_pair(judged_extremes);
}

TEST_CASE("the total order is one: its steps through all binary16 encodings",
          "[number][compare][table]") {
  // From -NaN to +NaN the encodings come in this order and no other (5.10).
  std::vector<std::uint64_t> all;
  for (std::uint64_t a = 0xFFFF; a >= 0x8000; --a) all.push_back(a);
  for (std::uint64_t a = 0; a < 0x8000; ++a) all.push_back(a);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const bool forth = total_order(kBinary16, all[i], all[i + 1]);
    const bool back = total_order(kBinary16, all[i + 1], all[i]);
    if (!forth || back || !total_order(kBinary16, all[i], all[i])) wrong = i + 1;
  }
  REQUIRE(wrong == 0);
}

}  // namespace test_compare
