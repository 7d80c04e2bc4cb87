// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/round.hpp"
#include "number/judge.hpp"
#include "number/samples.hpp"

namespace test_round {

using namespace halfscope;

/// What round_pack makes of +-significand * 2^exponent, judged; empty when right.
std::string judged(const NamedFormat& row, std::uint64_t significand, int exponent) {
  const oracle::Layout& layout = oracle::layout(row.name);
  const bool stochastic = significand % 5 == 0;
  oracle::Outcome outcome = oracle::number(layout, false, oracle::exactly({significand, exponent}),
                                           {.stochastic = stochastic});
  for (const bool negative : {false, true}) {
    outcome.negative = negative;
    const auto rounded = [&](const Modes& modes) {
      return round_pack(row.format, negative, significand, exponent, modes);
    };
    const std::string wrong =
        judge::disagreement(layout, outcome, {.stochastic = stochastic}, rounded);
    if (!wrong.empty()) {
      return fmt::format("{}{:#x} * 2^{}: {}", negative ? "-" : "", significand, exponent, wrong);
    }
  }
  return {};
}

/// Exponents of the leading bit from below the smallest subnormal to above the largest binade.
template <typename Visit>
std::string first_wrong(const NamedFormat& row, Visit visit) {
  const Format f = row.format;
  for (int e = f.min_quantum_exponent() - 4; e <= f.emax + 3; ++e) {
    const std::string wrong = visit(e);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

TEST_CASE("round_pack is the oracle's rounding in every binade of every format",
          "[number][round][oracle]") {
  for (const NamedFormat& row : kFormats) {
    CAPTURE(row.name);
    // A significand with room below p bits, and one that fills the whole word.
    std::vector<int> widths = {64};
    if (row.format.precision < 53) widths.push_back(row.format.precision + 3);
    const std::string wrong = first_wrong(row, [&](int e) -> std::string {
      for (const int width : widths) {
        for (const std::uint64_t significand : samples::significands(row.format, e, width)) {
          const std::string found = judged(row, significand, e - width + 1);
          if (!found.empty()) return found;
        }
      }
      return {};
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("round_pack to 8-bit formats: every significand of p + 5 bits in every binade",
          "[number][round][oracle]") {
  for (const NamedFormat& row : kFormats) {
    if (row.format.width > 8) continue;
    CAPTURE(row.name);
    const int width = row.format.precision + 5;
    const std::uint64_t first = std::uint64_t{1} << (width - 1);
    const std::string wrong = first_wrong(row, [&](int e) -> std::string {
      for (std::uint64_t significand = first; significand < 2 * first; ++significand) {
        const std::string found = judged(row, significand, e - width + 1);
        if (!found.empty()) return found;
      }
      return {};
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("round_pack takes significands of every width", "[number][round][oracle]") {
  // The same value written with more or fewer trailing zeros, down to one bit and far exponents.
  for (const NamedFormat& row : kFormats) {
    CAPTURE(row.name);
    for (int width = 1; width <= 64; ++width) {
      for (const std::uint64_t top : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        for (const int e : {row.format.emin() - 1, row.format.emin(), 0, row.format.emax,
                            row.format.emax + 2000, row.format.min_quantum_exponent() - 2000}) {
          REQUIRE(judged(row, top >> (64 - width), e - width + 1) == "");
        }
      }
    }
  }
}

TEST_CASE("round_pack of zero keeps the sign and raises nothing", "[number][round][table]") {
  for (const NamedFormat& row : kFormats) {
    CAPTURE(row.name);
    for (const judge::Direction& direction : judge::kDirections) {
      const Rounded plus = round_pack(row.format, false, 0, 0, {.rounding = direction.mode});
      const Rounded minus = round_pack(row.format, true, 0, 0, {.rounding = direction.mode});
      CHECK(plus.bits == 0);
      CHECK(minus.bits == oracle::layout(row.name).sign());
      CHECK(plus.flags == Flags{});
      CHECK(minus.flags == Flags{});
    }
  }
}

TEST_CASE("a tail folded into a sticky bit rounds like the whole", "[number][round][table]") {
  // round_pack promises this for p + 2 bits and more; wider values than 64 bits rely on it.
  for (const NamedFormat& row : kFormats) {
    const Format f = row.format;
    CAPTURE(row.name);
    const int width = f.precision + 2;
    for (int e = f.min_quantum_exponent() - 3; e <= f.emax; e += (e < f.emin() + 3 ? 1 : 7)) {
      for (const std::uint64_t significand : samples::significands(f, e, 64)) {
        const int dropped = 64 - width;
        const std::uint64_t tail = significand & ((std::uint64_t{1} << dropped) - 1);
        const std::uint64_t folded = (significand >> dropped) | (tail != 0 ? 1 : 0);
        for (const judge::Direction& direction : judge::kDirections) {
          const Rounded whole =
              round_pack(f, false, significand, e - 63, {.rounding = direction.mode});
          const Rounded short_one =
              round_pack(f, false, folded, e - width + 1, {.rounding = direction.mode});
          if (whole.bits == short_one.bits && whole.flags == short_one.flags) continue;
          FAIL(fmt::format("{} {:#x} * 2^{}", direction.name, significand, e - 63));
        }
      }
    }
  }
}

}  // namespace test_round
