// SPDX-License-Identifier: Apache-2.0
// Neighbours, scaling by powers of two, exponents, sign bits and classes, against the oracle.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/neighbour.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"
#include "oracle_compare.hpp"
#include "oracle_unary.hpp"

namespace test_unary {

using namespace halfscope;

/// All encodings of up to 16 bits; of wider formats every exponent with the structured fractions.
std::vector<std::uint64_t> encodings(Format f) {
  std::vector<std::uint64_t> out;
  if (f.width <= 16) {
    for (std::uint64_t a = 0; a <= 2 * f.magnitude_mask() + 1; ++a) out.push_back(a);
    return out;
  }
  for (std::uint64_t field = 0; field < std::uint64_t{1} << f.exponent_bits(); ++field) {
    for (const std::uint64_t fraction : samples::fractions(f)) {
      out.push_back((field << f.fraction_bits()) | fraction);
      out.push_back(out.back() | f.sign_mask());
    }
  }
  return out;
}

template <typename Judge>
void for_every_encoding(const Judge& judge_one) {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(t.name);
    const std::vector<std::uint64_t> all = encodings(t.ours);
    REQUIRE(judge::first_wrong_of(all.size(),
                                  [&](std::uint64_t i) { return judge_one(t, all[i]); }) == "");
  }
}

std::string judged_scale_b(const judge::Target& t, std::uint64_t a, std::int64_t n) {
  const bool stochastic = (a + static_cast<std::uint64_t>(n)) % 32 == 0;
  const std::string wrong = judge::judged(
      t, t.want, judge::Bits<1>{a}, {.stochastic = stochastic},
      [&](const judge::Operands<1>& x, oracle::Precise precise) {
        return oracle::scale_b(t.want, x[0], n, precise);
      },
      [&](const judge::Bits<1>& x, const Modes& modes) { return scale_b(t.ours, x[0], n, modes); });
  return wrong.empty() ? wrong : fmt::format("n {}: {}", n, wrong);
}

/// Powers that take the smallest and the largest numbers across the range, and far out of it.
std::vector<std::int64_t> powers(Format f, std::uint64_t a) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (f.width <= 8) {
    std::vector<std::int64_t> all = {Limits::min(), -2147483649, 4294967296, Limits::max()};
    const int span = f.emax - f.min_quantum_exponent() + 4;
    for (int n = -span; n <= span; ++n) all.push_back(n);
    return all;
  }
  const std::int64_t field =
      static_cast<std::int64_t>((a & f.magnitude_mask()) >> f.fraction_bits());
  const std::int64_t to_emin = 1 - field;  // takes a to the smallest normal binade
  const std::int64_t extremes[] = {Limits::min(), Limits::max(), -2147483649, 4294967296};
  const auto random = static_cast<std::int64_t>(samples::mixed(a) % 64) - 32;
  return {to_emin - 1 - static_cast<std::int64_t>(a % static_cast<std::uint64_t>(f.precision + 2)),
          to_emin - 1,
          f.emax - f.emin() + to_emin,
          f.emax - f.emin() + to_emin + 1,
          random,
          extremes[a % 4]};
}

TEST_CASE("next_up and next_down: every encoding of up to 16 bits, hard ones of the wide formats",
          "[number][unary][oracle]") {
  for_every_encoding([](const judge::Target& t, std::uint64_t a) {
    const std::string up = judge::judged(
        t, t.want, judge::Bits<1>{a}, {.flush = false},
        [&](const judge::Operands<1>& x, oracle::Precise) { return oracle::next_up(t.want, x[0]); },
        [&](const judge::Bits<1>& x, const Modes& modes) { return next_up(t.ours, x[0], modes); });
    if (!up.empty()) return "next_up " + up;
    const std::string down = judge::judged(
        t, t.want, judge::Bits<1>{a}, {.flush = false},
        [&](const judge::Operands<1>& x, oracle::Precise) {
          return oracle::next_down(t.want, x[0]);
        },
        [&](const judge::Bits<1>& x, const Modes& modes) {
          return next_down(t.ours, x[0], modes);
        });
    return down.empty() ? down : "next_down " + down;
  });
}

TEST_CASE("next_up lies above, with nothing between", "[number][unary][oracle]") {
  // By the values, not by the encodings: the next above x is the least y with x < y.
  for (const judge::Target& t : judge::small_formats()) {
    CAPTURE(t.name);
    std::vector<oracle::Operand> all;
    for (std::uint64_t a = 0; a <= 2 * t.ours.magnitude_mask() + 1; ++a) {
      all.push_back(oracle::operand(t.want, a));
    }
    std::string wrong;
    for (std::uint64_t a = 0; a < all.size(); ++a) {
      if (all[a].is_nan()) continue;
      const oracle::Operand next = oracle::operand(t.want, next_up(t.ours, a).bits);
      for (const oracle::Operand& y : all) {
        const bool above = oracle::relation(all[a], y) == oracle::Relation::less;
        if (above && oracle::relation(y, next) == oracle::Relation::less) {
          wrong = fmt::format("{:#x} is between {:#x} and its next", y.code, a);
        }
      }
    }
    REQUIRE(wrong == "");
  }
}

TEST_CASE("scale_b: every encoding of up to 16 bits across both ends of the range",
          "[number][unary][oracle]") {
  for_every_encoding([](const judge::Target& t, std::uint64_t a) {
    std::string wrong;
    for (const std::int64_t n : powers(t.ours, a)) {
      if (wrong.empty()) wrong = judged_scale_b(t, a, n);
    }
    return wrong;
  });
}

TEST_CASE("log_b: every encoding of up to 16 bits, hard ones of the wide formats",
          "[number][unary][oracle]") {
  for_every_encoding([](const judge::Target& t, std::uint64_t a) {
    return judge::judged(
        t, t.want, judge::Bits<1>{a}, {.stochastic = a % 8 == 0},
        [&](const judge::Operands<1>& x, oracle::Precise precise) {
          return oracle::log_b(t.want, x[0], precise);
        },
        [&](const judge::Bits<1>& x, const Modes& modes) { return log_b(t.ours, x[0], modes); });
  });
}

TEST_CASE("negate, absolute and copy_sign change the sign bit of every encoding and nothing else",
          "[number][unary][oracle]") {
  for_every_encoding([](const judge::Target& t, std::uint64_t a) -> std::string {
    const oracle::Operand x = oracle::operand(t.want, a);
    const std::uint64_t plus = x.code;
    const std::uint64_t minus = x.code + t.want.sign();
    const bool right = negate(t.ours, a) == (x.negative ? plus : minus) &&
                       absolute(t.ours, a) == plus && copy_sign(t.ours, a, 0) == plus &&
                       copy_sign(t.ours, a, t.want.sign()) == minus &&
                       copy_sign(t.ours, a, ~std::uint64_t{0}) == minus &&
                       copy_sign(t.ours, a, t.want.sign() - 1) == plus;
    return right ? "" : fmt::format("{:#x}", a);
  });
}

TEST_CASE("classify: every encoding of up to 16 bits, hard ones of the wide formats",
          "[number][unary][oracle]") {
  using oracle::NumberClass;
  const auto same_class = [](Class got, NumberClass want) {
    switch (got) {
      case Class::signaling_nan: return want == NumberClass::signaling_nan;
      case Class::quiet_nan: return want == NumberClass::quiet_nan;
      case Class::negative_infinity: return want == NumberClass::negative_infinity;
      case Class::negative_normal: return want == NumberClass::negative_normal;
      case Class::negative_subnormal: return want == NumberClass::negative_subnormal;
      case Class::negative_zero: return want == NumberClass::negative_zero;
      case Class::positive_zero: return want == NumberClass::positive_zero;
      case Class::positive_subnormal: return want == NumberClass::positive_subnormal;
      case Class::positive_normal: return want == NumberClass::positive_normal;
      case Class::positive_infinity: return want == NumberClass::positive_infinity;
    }
    return false;
  };
  for_every_encoding([&](const judge::Target& t, std::uint64_t a) -> std::string {
    const NumberClass want = oracle::number_class(oracle::operand(t.want, a));
    return same_class(classify(t.ours, a), want) ? "" : fmt::format("{:#x}", a);
  });
}

}  // namespace test_unary
