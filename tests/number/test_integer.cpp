// SPDX-License-Identifier: Apache-2.0
// Integers: to, from, and within a floating-point format, against the oracle.
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/integral.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"
#include "oracle_unary.hpp"

namespace test_integer {

using namespace halfscope;

struct Type {
  const char* name;
  IntegerType ours;
  oracle::IntegerRange want;
};

constexpr Type kTypes[] = {{"i32", IntegerType::i32, {32, true}},
                           {"u32", IntegerType::u32, {32, false}},
                           {"i64", IntegerType::i64, {64, true}},
                           {"u64", IntegerType::u64, {64, false}}};

/// Every direction and NaN policy; if wanted, stochastic rounding with some words.
std::vector<judge::Modes> integer_modes(bool stochastic) {
  std::vector<judge::Modes> rows = judge::nan_modes();
  if (!stochastic) return rows;
  for (const int bits : {32, 3, 1}) {
    for (const std::uint64_t part : {0U, 1U, 2U, 3U, 4U}) {
      const std::uint64_t word = ((std::uint64_t{1} << bits) - 1) * part / 4;
      judge::Modes m;
      m.ours.rounding = Rounding::stochastic;
      m.ours.random = static_cast<std::uint32_t>(word);
      m.ours.random_bits = bits;
      m.want.rule = {oracle::Direction::stochastic, m.ours.random, bits};
      rows.push_back(m);
    }
  }
  return rows;
}

/// Judges `ours(modes, exact)` by `want(operand, modes, exact)` for one encoding in all modes.
template <typename Want, typename Ours>
std::string judged_integral(const judge::Target& t, std::uint64_t a, const Want& want,
                            const Ours& ours) {
  static const std::vector<judge::Modes> some = integer_modes(false);
  static const std::vector<judge::Modes> all = integer_modes(true);
  for (const bool daz : {false, true}) {
    const oracle::Operand x = oracle::operand(t.want, a, daz);
    if (daz && x.code == oracle::operand(t.want, a).code && a % 64 != 0) break;
    for (const judge::Modes& row : t.ours.width <= 8 || a % 16 == 9 ? all : some) {
      Modes modes = row.ours;
      modes.denormals_are_zero = daz;
      for (const bool exact : {false, true}) {
        const oracle::Result expected = want(x, row.want, exact);
        const Rounded got = ours(modes, exact);
        if (judge::same(got, expected)) continue;
        return fmt::format("{} {:#x}{}: {}", t.name, a, exact ? " exact" : "",
                           judge::difference(modes, got, expected));
      }
    }
  }
  return {};
}

std::string judged_to_integer(const judge::Target& t, const Type& type, std::uint64_t a) {
  const std::string wrong = judged_integral(
      t, a,
      [&](const oracle::Operand& x, const oracle::Modes& modes, bool exact) {
        return oracle::to_integer(type.want, x, modes, exact);
      },
      [&](const Modes& modes, bool exact) {
        return to_integer(type.ours, t.ours, a, modes, exact);
      });
  return wrong.empty() ? wrong : fmt::format("{} {}", type.name, wrong);
}

std::string judged_round_to_integral(const judge::Target& t, std::uint64_t a) {
  return judged_integral(
      t, a,
      [&](const oracle::Operand& x, const oracle::Modes& modes, bool exact) {
        return oracle::round_to_integral(t.want, x, modes, exact);
      },
      [&](const Modes& modes, bool exact) { return round_to_integral(t.ours, a, modes, exact); });
}

/// All encodings of binary16 and the small formats; of the others every exponent with fractions cut
/// at the point.
std::vector<std::uint64_t> encodings(Format f) {
  std::vector<std::uint64_t> out;
  if (f.exponent_bits() <= 5) {
    for (std::uint64_t a = 0; a <= 2 * f.magnitude_mask() + 1; ++a) out.push_back(a);
    return out;
  }
  const std::uint64_t fields = std::uint64_t{1} << f.exponent_bits();
  for (std::uint64_t field = 0; field < fields; ++field) {
    const int e = static_cast<int>(field) - static_cast<int>(fields / 2 - 1);
    std::vector<std::uint64_t> fractions = samples::fractions(f);
    for (const int cut : {e, e + 1, e + 2}) {  // digits before the point, leading one included
      samples::append_cut(fractions, f.precision, cut);
    }
    for (const std::uint64_t fraction : fractions) {
      out.push_back((field << f.fraction_bits()) | (fraction & f.fraction_mask()));
      out.push_back(out.back() | f.sign_mask());
    }
  }
  return out;
}

/// Integers of every length, cut everywhere a significand of f ends; their negatives; the ends.
std::vector<std::uint64_t> integers(Format f) {
  std::vector<std::uint64_t> out = {0, ~std::uint64_t{0}};
  for (int width = 1; width <= 64; ++width) {
    std::vector<std::uint64_t> some = samples::leading_parts(width);
    for (const int cut : {f.precision - 1, f.precision, f.precision + 1}) {
      samples::append_cut(some, width, cut);
    }
    for (const std::uint64_t n : some) {
      out.push_back(n);
      out.push_back(0 - n);
    }
  }
  return out;
}

TEST_CASE("round to integral: every encoding of binary16 and less, hard ones of the wide formats",
          "[number][integer][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(t.name);
    const std::vector<std::uint64_t> all = encodings(t.ours);
    REQUIRE(judge::first_wrong_of(all.size(), [&](std::uint64_t i) {
              return judged_round_to_integral(t, all[i]);
            }) == "");
  }
}

TEST_CASE("to integers: every encoding of binary16 and less, hard ones of the wide formats",
          "[number][integer][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for (const Type& type : kTypes) {
      CAPTURE(t.name, type.name);
      const std::vector<std::uint64_t> all = encodings(t.ours);
      REQUIRE(judge::first_wrong_of(all.size(), [&](std::uint64_t i) {
                return judged_to_integer(t, type, all[i]);
              }) == "");
    }
  }
}

TEST_CASE("from integers: every length, every place to cut, both signs, all modes",
          "[number][integer][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    const std::vector<std::uint64_t> all = integers(t.ours);
    for (const Type& type : kTypes) {
      CAPTURE(t.name, type.name);
      REQUIRE(judge::first_wrong_of(all.size(), [&](std::uint64_t i) {
                const bool stochastic = i % 8 == 0;
                const oracle::Outcome outcome =
                    oracle::from_integer(t.want, type.want, all[i], {.stochastic = stochastic});
                const std::string wrong = judge::disagreement(
                    t.want, outcome, {.stochastic = stochastic}, [&](const Modes& modes) {
                      return from_integer(t.ours, type.ours, all[i], modes);
                    });
                return wrong.empty() ? wrong : fmt::format("{:#x}: {}", all[i], wrong);
              }) == "");
    }
  }
}

TEST_CASE("from integers: every integer about binary16's range", "[number][integer][oracle]") {
  const judge::Target t("binary16");
  const Type& i32 = kTypes[0];
  constexpr std::uint64_t kCount = 1U << 17;
  REQUIRE(judge::first_wrong_of(kCount, [&](std::uint64_t i) {
            const auto n = static_cast<std::uint32_t>(i - kCount / 2 - 2048);  // to below -65536
            const oracle::Outcome outcome = oracle::from_integer(t.want, i32.want, n);
            const std::string wrong = judge::disagreement(
                t.want, outcome, {},
                [&](const Modes& modes) { return from_integer(t.ours, i32.ours, n, modes); });
            return wrong.empty() ? wrong : fmt::format("{:#x}: {}", n, wrong);
          }) == "");
}

}  // namespace test_integer
