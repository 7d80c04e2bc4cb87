// SPDX-License-Identifier: Apache-2.0
// What each mode may change, by its definition, and that it changes nothing else: the result under
// the mode is derived here from the result without it. No oracle; every binary16 encoding.
#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/samples.hpp"
#include "parallel.hpp"

namespace test_modes_relations {

using namespace halfscope;

using Apply = Rounded (*)(std::uint64_t a, std::uint64_t b, std::uint64_t c, const Modes&);

struct Operation {
  const char* name;
  Apply apply;
  Format result = kBinary16;
};

constexpr Operation kOperations[] = {
    {"add", [](std::uint64_t a, std::uint64_t b, std::uint64_t,
               const Modes& m) { return add(kBinary16, a, b, m); }},
    {"multiply", [](std::uint64_t a, std::uint64_t b, std::uint64_t,
                    const Modes& m) { return multiply(kBinary16, a, b, m); }},
    {"divide", [](std::uint64_t a, std::uint64_t b, std::uint64_t,
                  const Modes& m) { return divide(kBinary16, a, b, m); }},
    {"fma", [](std::uint64_t a, std::uint64_t b, std::uint64_t c,
               const Modes& m) { return fused_multiply_add(kBinary16, a, b, c, m); }},
    {"square root", [](std::uint64_t a, std::uint64_t, std::uint64_t,
                       const Modes& m) { return square_root(kBinary16, a, m); }},
    {"to e5m2",
     [](std::uint64_t a, std::uint64_t, std::uint64_t, const Modes& m) {
       return convert(kFloat8E5M2, kBinary16, a, m);
     },
     kFloat8E5M2},
};

struct Case {
  const Operation& op;
  std::uint64_t a, b, c;
  Modes modes;  ///< direction and tininess alone

  Rounded under(const Modes& m) const { return op.apply(a, b, c, m); }
  Format format() const { return op.result; }
};

bool same(const Rounded& x, const Rounded& y) { return x.bits == y.bits && x.flags == y.flags; }

bool is_subnormal(Format f, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & f.magnitude_mask();
  return magnitude != 0 && magnitude <= f.fraction_mask();
}

/// Tininess decides nothing but the underflow flag.
bool tininess_changes_underflow_alone(const Case& c) {
  Modes modes = c.modes;
  modes.tininess = Tininess::after_rounding;
  const Rounded after = c.under(modes);
  modes.tininess = Tininess::before_rounding;
  Rounded before = c.under(modes);
  if (after.flags.underflow && !before.flags.underflow) return false;  // after implies before
  before.flags.underflow = after.flags.underflow;
  return same(before, after);
}

/// Flushing makes a zero of the sign, underflow and inexact, of every subnormal result and of every
/// one that underflowed; all else stays. (An exact subnormal raised nothing before.)
bool flushing_takes_the_tiny(const Case& c) {
  Modes flush = c.modes;
  flush.flush_to_zero = true;
  const Rounded plain = c.under(c.modes);
  const Rounded flushed = c.under(flush);
  const bool tiny = is_subnormal(c.format(), plain.bits) || plain.flags.underflow;
  if (!tiny) return same(flushed, plain);
  const std::uint64_t zero = plain.bits & c.format().sign_mask();
  return same(flushed, {zero, {.underflow = true, .inexact = true}});
}

/// Saturation puts the largest number in place of an infinity; flags and all else stay.
bool saturation_replaces_infinity_alone(const Case& c) {
  Modes saturate = c.modes;
  saturate.saturate = true;
  Rounded plain = c.under(c.modes);
  const Format f = c.format();
  if ((plain.bits & f.magnitude_mask()) == f.infinity()) plain.bits -= 1;
  return same(c.under(saturate), plain);
}

/// Subnormals as zeros: the operation on operands that were made zeros beforehand.
bool subnormals_count_as_zeros(const Case& c) {
  Modes daz = c.modes;
  daz.denormals_are_zero = true;
  const auto zeroed = [](std::uint64_t x) {
    return is_subnormal(kBinary16, x) ? x & kBinary16.sign_mask() : x;
  };
  const Case zeros = {c.op, zeroed(c.a), zeroed(c.b), zeroed(c.c), c.modes};
  return same(c.under(daz), zeros.under(c.modes));
}

/// The NaN policy chooses among NaNs; numbers and flags stay.
bool policy_changes_nans_alone(const Case& c) {
  const Rounded plain = c.under(c.modes);
  for (const NanPolicy policy : {NanPolicy::canonical, NanPolicy::cuda}) {
    Modes other = c.modes;
    other.nan = policy;
    const Rounded got = c.under(other);
    const Format f = c.format();
    const std::uint64_t nan = policy == NanPolicy::cuda ? f.magnitude_mask() : f.quiet_nan();
    const bool is_nan = (plain.bits & f.magnitude_mask()) > f.infinity();
    if (!same(got, {is_nan ? nan : plain.bits, plain.flags})) return false;
  }
  return true;
}

std::vector<Modes> directions() {
  std::vector<Modes> rows;
  for (const Rounding rounding :
       {Rounding::ties_to_even, Rounding::ties_to_away, Rounding::toward_zero, Rounding::upward,
        Rounding::downward, Rounding::to_odd}) {
    rows.push_back({.rounding = rounding});
  }
  for (const std::uint32_t random : {0U, 1U, 2U, 3U}) {
    rows.push_back({.rounding = Rounding::stochastic, .random = random, .random_bits = 2});
  }
  return rows;
}

/// For every a; b and c are mixed, every other time with exponents that meet a's, and so is the
/// tininess rule.
Case case_of(const Operation& op, std::uint64_t a, Modes modes) {
  const std::uint64_t random = samples::mixed(a);
  if ((random >> 62) % 2 != 0) modes.tininess = Tininess::before_rounding;
  const std::uint64_t near = (random & 0x83FF) | ((0x7800 - (a & 0x7C00)) & 0x7C00);
  const std::uint64_t b = (random >> 60) % 2 == 0 ? near : (random >> 16) & 0xFFFF;
  const std::uint64_t tiny = (random >> 32) & 0x8FFF;
  return {op, a, b, (random >> 61) % 2 == 0 ? tiny : (random >> 32) & 0xFFFF, modes};
}

template <typename Relation>
std::string breach(const Relation& holds) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  const std::vector<Modes> rows = directions();
  for (const Operation& op : kOperations) {
    for (const Modes& row : rows) {
      std::atomic<std::uint64_t> first = kNone;
      parallel_for(1U << 6, [&](std::uint64_t block) {
        for (std::uint64_t a = block << 10; a < (block + 1) << 10; ++a) {
          if (!holds(case_of(op, a, row)) && a < first) first = a;
        }
      });
      if (first == kNone) continue;
      const Case c = case_of(op, first, row);
      return fmt::format("{} {:#x} {:#x} {:#x}, direction {}", op.name, c.a, c.b, c.c,
                         static_cast<int>(row.rounding));
    }
  }
  return {};
}

TEST_CASE("tininess changes the underflow flag and nothing else", "[number][modes]") {
  REQUIRE(breach(tininess_changes_underflow_alone) == "");
}

TEST_CASE("flushing takes every tiny result and nothing else", "[number][modes]") {
  REQUIRE(breach(flushing_takes_the_tiny) == "");
}

TEST_CASE("saturation replaces infinities and nothing else", "[number][modes]") {
  REQUIRE(breach(saturation_replaces_infinity_alone) == "");
}

TEST_CASE("subnormal operands that count as zeros are zeros in all respects", "[number][modes]") {
  REQUIRE(breach(subnormals_count_as_zeros) == "");
}

TEST_CASE("a NaN policy changes NaNs and nothing else", "[number][modes]") {
  REQUIRE(breach(policy_changes_nans_alone) == "");
}

}  // namespace test_modes_relations
