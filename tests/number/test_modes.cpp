// SPDX-License-Identifier: Apache-2.0
// All modes at once: every direction, tininess rule, NaN policy, and all combinations of flushing,
// subnormals as zeros and saturation, on operands at the edges of each format, against the oracle.
// What each mode alone may change is in test_modes_relations.cpp.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"

namespace test_modes {

using namespace halfscope;

/// 6 directions and stochastic rounding with three random numbers; the rest is a product.
std::vector<judge::Modes> directions() {
  std::vector<judge::Modes> rows;
  for (const judge::Direction& row : judge::kDirections) {
    judge::Modes m;
    m.ours.rounding = row.mode;
    m.want.rule = row.direction;
    rows.push_back(m);
  }
  for (const std::uint32_t random : {0U, 0x80U, 0xFFU}) {
    judge::Modes m;
    m.ours.rounding = Rounding::stochastic;
    m.ours.random = random;
    m.ours.random_bits = 8;
    m.want.rule = {oracle::Direction::stochastic, random, 8};
    rows.push_back(m);
  }
  return rows;
}

std::vector<judge::Modes> all_modes() {
  std::vector<judge::Modes> rows;
  for (const judge::Modes& direction : directions()) {
    for (unsigned i = 0; i < 24; ++i) {
      judge::Modes m = direction;
      judge::set_tininess(m, (i & 1) != 0);
      m.ours.flush_to_zero = m.want.flush = (i & 2) != 0;
      m.ours.saturate = m.want.saturate = (i & 4) != 0;
      m.want.flush_subnormal = i / 8 == 1;
      m.ours.flush = m.want.flush_subnormal ? Flush::subnormal : Flush::tiny;
      m.ours.nan = static_cast<NanPolicy>(i / 8);
      m.want.nan = static_cast<oracle::NanRule>(i / 8);
      rows.push_back(m);
    }
  }
  return rows;
}

/// Empty when `ours(bits, modes)` is `want(operands)` under every combination.
template <std::size_t N, typename Want, typename Ours>
std::string judged_in_all(const judge::Target& from, const oracle::Layout& to,
                          const judge::Bits<N>& bits, const Want& want, const Ours& ours) {
  static const std::vector<judge::Modes> all = all_modes();
  for (const bool daz : {false, true}) {
    const oracle::Outcome outcome = want(judge::operands(from.want, bits, daz));
    for (const judge::Modes& row : all) {
      Modes modes = row.ours;
      modes.denormals_are_zero = daz;
      const Rounded got = ours(bits, modes);
      const oracle::Result expected = oracle::finish(to, outcome, row.want);
      if (judge::same(got, expected)) continue;
      return fmt::format("{} to {}, {}: {}", from.name, to.name, judge::in_hex(bits),
                         judge::difference(modes, got, expected));
    }
  }
  return {};
}

/// Magnitudes at the edges of the format, and those whose products and quotients get there: beside
/// the square roots of the least and of the largest normal.
std::vector<std::uint64_t> edges(Format f) {
  const auto power = [&](int e) {
    return static_cast<std::uint64_t>(e - f.emin() + 1) << f.fraction_bits();
  };
  const std::uint64_t ones = f.fraction_mask();
  std::vector<std::uint64_t> out = {0, 1, 3, ones, ones + 1, ones + 2, f.largest_finite()};
  for (const int e : {f.emin() / 2, -1, 0, f.emax / 2 + 1}) {
    for (const std::uint64_t fraction : {std::uint64_t{0}, std::uint64_t{1}, ones}) {
      out.push_back(std::min(power(e) + fraction, f.largest_finite()));
    }
  }
  if (f.has_infinity()) out.push_back(f.infinity());
  if (f.has_nan()) {
    out.push_back(f.quiet_nan() | 1);
    out.push_back(f.infinity() | 1);  // signaling
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Both signs.
std::vector<std::uint64_t> operands_of(Format f) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t magnitude : edges(f)) {
    out.push_back(magnitude);
    out.push_back(magnitude | f.sign_mask());
  }
  return out;
}

const judge::Binary& binary_operation(std::string_view name) {
  return *std::find_if(std::begin(judge::kBinary), std::end(judge::kBinary),
                       [&](const judge::Binary& row) { return row.name == name; });
}

void every_pair_in_every_mode(std::string_view name) {
  const judge::Binary& op = binary_operation(name);
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(op.name, t.name);
    const std::vector<std::uint64_t> sample = operands_of(t.ours);
    const auto want = [&](const judge::Operands<2>& x) {
      return op.want(t.want, x[0], x[1], {.stochastic = true});
    };
    const auto ours = [&](const judge::Bits<2>& x, const Modes& modes) {
      return op.ours(t.ours, x[0], x[1], modes);
    };
    const std::string wrong = judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
      std::string found;
      for (std::size_t j = i % 2; j < sample.size() && found.empty(); j += 2) {  // half the signs
        found = judged_in_all<2>(t, t.want, {sample[i], sample[j]}, want, ours);
      }
      return found;
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("add in every combination of modes", "[number][modes][oracle]") {
  every_pair_in_every_mode("add");
}

TEST_CASE("multiply in every combination of modes", "[number][modes][oracle]") {
  every_pair_in_every_mode("multiply");
}

TEST_CASE("divide in every combination of modes", "[number][modes][oracle]") {
  every_pair_in_every_mode("divide");
}

TEST_CASE("fma in every combination of modes", "[number][modes][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(t.name);
    const std::vector<std::uint64_t> sample = operands_of(t.ours);
    const std::uint64_t count = sample.size();
    const auto want = [&](const judge::Operands<3>& x) {
      return oracle::fused_multiply_add(t.want, x[0], x[1], x[2], {.stochastic = true});
    };
    const auto ours = [&](const judge::Bits<3>& x, const Modes& modes) {
      return fused_multiply_add(t.ours, x[0], x[1], x[2], modes);
    };
    const std::string wrong = judge::first_wrong_of(600, [&](std::uint64_t i) {
      const std::uint64_t random = samples::mixed(i);
      const judge::Bits<3> bits = {sample[random % count], sample[(random >> 16) % count],
                                   sample[(random >> 32) % count]};
      return judged_in_all<3>(t, t.want, bits, want, ours);
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("square root in every combination of modes", "[number][modes][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    CAPTURE(t.name);
    const std::vector<std::uint64_t> sample = operands_of(t.ours);
    const auto want = [&](const judge::Operands<1>& x) {
      return oracle::square_root(t.want, x[0], {.stochastic = true});
    };
    const auto ours = [&](const judge::Bits<1>& x, const Modes& modes) {
      return square_root(t.ours, x[0], modes);
    };
    REQUIRE(judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
              return judged_in_all<1>(t, t.want, {sample[i]}, want, ours);
            }) == "");
  }
}

TEST_CASE("conversions between all formats in every combination of modes",
          "[number][modes][oracle]") {
  for (const NamedFormat& source : kFormats) {
    const judge::Target from(source);
    for (const NamedFormat& target : kFormats) {
      const judge::Target to(target);
      CAPTURE(from.name, to.name);
      std::vector<std::uint64_t> sample = operands_of(from.ours);
      const std::vector<std::uint64_t> hard = samples::encodings(from.ours, to.ours);
      const std::size_t step = hard.size() / 100 + 1;  // signs alternate
      for (std::size_t i = 0; i < hard.size(); i += step) {
        sample.push_back(hard[i] | (i / step % 2 != 0 ? from.ours.sign_mask() : 0));
      }
      const auto want = [&](const judge::Operands<1>& x) {
        return oracle::convert(to.want, x[0], {.stochastic = true});
      };
      const auto ours = [&](const judge::Bits<1>& x, const Modes& modes) {
        return convert(to.ours, from.ours, x[0], modes);
      };
      REQUIRE(judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
                return judged_in_all<1>(from, to.want, {sample[i]}, want, ours);
              }) == "");
    }
  }
}

}  // namespace test_modes
