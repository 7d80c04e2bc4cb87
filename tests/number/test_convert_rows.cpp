// SPDX-License-Identifier: Apache-2.0
// Conversions worked out by hand. The row's name is the reason.
#include <bit>
#include <cstdint>
#include <limits>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_convert_rows {

using namespace halfscope;

constexpr Flags kNone = {};
constexpr Flags kInexact = {.inexact = true};
constexpr Flags kTiny = {.underflow = true, .inexact = true};
constexpr Flags kOverflow = {.overflow = true, .inexact = true};

struct Row {
  const char* what;
  double x;
  std::uint64_t bits;
  Flags flags;
};

void check(Format f, const Row& row, Rounding mode = Rounding::ties_to_even) {
  CAPTURE(row.what, row.x);
  const Rounded r = from_double(f, row.x, {.rounding = mode});
  CHECK(r.bits == row.bits);
  CHECK(r.flags == row.flags);
}

TEST_CASE("binary16 near zero", "[number][convert][table]") {
  const Row rows[] = {
      {"zero is exact", 0.0, 0x0000, kNone},
      {"the sign of zero stays", -0.0, 0x8000, kNone},
      {"the smallest binary64 is far below", 0x1p-1074, 0x0000, kTiny},
      {"just below half the least subnormal", 0x1.fffffffffffffp-26, 0x0000, kTiny},
      {"half the least subnormal: tie to even zero", 0x1p-25, 0x0000, kTiny},
      {"and a negative tie to minus zero", -0x1p-25, 0x8000, kTiny},
      {"one binary32 ulp above the tie", 0x1.000002p-25, 0x0001, kTiny},
      {"one binary64 ulp above the tie", 0x1.0000000000001p-25, 0x0001, kTiny},
      {"just below the least subnormal survives", 0x1.fffffep-25, 0x0001, kTiny},
      {"the least subnormal is exact: no underflow", 0x1p-24, 0x0001, kNone},
      {"1.5 quanta: tie to even, up", 0x1.8p-24, 0x0002, kTiny},
      {"just under 1.5 quanta", 0x1.7ffffep-24, 0x0001, kTiny},
      {"2.5 quanta: tie to even, down", 0x1.4p-23, 0x0002, kTiny},
      {"just over 2.5 quanta", 0x1.400002p-23, 0x0003, kTiny},
  };
  for (const Row& row : rows) check(kBinary16, row);
}

TEST_CASE("binary16 between subnormal and normal", "[number][convert][table]") {
  const Row rows[] = {
      {"the largest subnormal", 0x1.ff8p-15, 0x03FF, kNone},
      {"just below the last tie stays subnormal", 0x1.ffbffep-15, 0x03FF, kTiny},
      {"2^-14 - 2^-25: tie to even, a normal, tiny after", 0x1.ffcp-15, 0x0400, kTiny},
      {"just under 2^-14 - 2^-26: tiny after rounding", 0x1.ffdffep-15, 0x0400, kTiny},
      {"2^-14 - 2^-26: 11 digits round to 2^-14, not tiny", 0x1.ffep-15, 0x0400, kInexact},
      {"just below 2^-14: the same", 0x1.fffffep-15, 0x0400, kInexact},
      {"2^-14, the smallest normal", 0x1p-14, 0x0400, kNone},
      {"half an ulp above it: tie to even, down", 0x1.002p-14, 0x0400, kInexact},
      {"1.5 ulp above it: tie to even, up", 0x1.006p-14, 0x0402, kInexact},
  };
  for (const Row& row : rows) check(kBinary16, row);
}

TEST_CASE("tininess before rounding looks at the exact value", "[number][convert][table]") {
  const auto before = [](double x, Rounding mode = Rounding::ties_to_even) {
    return convert(kBinary16, kBinary64, std::bit_cast<std::uint64_t>(x),
                   {.rounding = mode, .tininess = Tininess::before_rounding});
  };
  CHECK(before(0x1.ffep-15).flags == kTiny);  // after rounding: not tiny
  CHECK(before(0x1.ffep-15).bits == 0x0400);
  CHECK(before(0x1.fffffep-15).flags == kTiny);
  CHECK(before(0x1.fffffep-15, Rounding::upward).flags == kTiny);
  CHECK(before(0x1.ff8p-15).flags == kNone);  // tiny, but exact
  CHECK(before(0x1p-14).flags == kNone);
  CHECK(before(0x1.002p-14).flags == kInexact);
  // Upward carries from the first value above the largest 11-digit number below 2^-14.
  CHECK(from_double(kBinary16, 0x1.ffcp-15, {.rounding = Rounding::upward}).flags == kTiny);
  CHECK(from_double(kBinary16, 0x1.ffc002p-15, {.rounding = Rounding::upward}).flags == kInexact);
  CHECK(from_double(kBinary16, -0x1.ffc002p-15, {.rounding = Rounding::upward}).flags == kTiny);
  CHECK(from_double(kBinary16, 0x1.fffffep-15, {.rounding = Rounding::toward_zero}).flags == kTiny);
  CHECK(from_double(kBinary16, 0x1.fffffep-15, {.rounding = Rounding::to_odd}).flags == kTiny);
}

TEST_CASE("binary16 near the top", "[number][convert][table]") {
  const Row rows[] = {
      {"the largest finite", 65504.0, 0x7BFF, kNone},
      {"past it by less than half an ulp", 65519.99, 0x7BFF, kInexact},
      {"the last binary32 under the tie", 0x1.ffdffep15, 0x7BFF, kInexact},
      {"tie at the top: to infinity", 65520.0, 0x7C00, kOverflow},
      {"and to minus infinity", -65520.0, 0xFC00, kOverflow},
      {"2^16", 65536.0, 0x7C00, kOverflow},
      {"the largest binary64", 0x1.fffffffffffffp1023, 0x7C00, kOverflow},
      {"infinity is exact", std::numeric_limits<double>::infinity(), 0x7C00, kNone},
      {"minus infinity too", -std::numeric_limits<double>::infinity(), 0xFC00, kNone},
  };
  for (const Row& row : rows) check(kBinary16, row);
  check(kBinary16, {"ties away: the tie overflows too", 65520.0, 0x7C00, kOverflow},
        Rounding::ties_to_away);
  check(kBinary16, {"toward zero: under 2^16 is no overflow", 65535.0, 0x7BFF, kInexact},
        Rounding::toward_zero);
  check(kBinary16, {"toward zero: 2^16 overflows to the largest", 65536.0, 0x7BFF, kOverflow},
        Rounding::toward_zero);
  check(kBinary16, {"upward: anything above the largest", 0x1.ffc002p15, 0x7C00, kOverflow},
        Rounding::upward);
  check(kBinary16, {"upward, negative: to the largest", -1e9, 0xFBFF, kOverflow}, Rounding::upward);
  check(kBinary16, {"downward, positive: to the largest", 1e9, 0x7BFF, kOverflow},
        Rounding::downward);
  check(kBinary16, {"downward, negative: to infinity", -1e9, 0xFC00, kOverflow},
        Rounding::downward);
  check(kBinary16, {"to odd: never infinity", 1e9, 0x7BFF, kOverflow}, Rounding::to_odd);
}

TEST_CASE("binary16 ties in the middle, in every direction", "[number][convert][table]") {
  struct Case {
    const char* what;
    double x;
    std::uint64_t even, away, zero, up, down, odd;
  };
  const Case cases[] = {
      {"one, exact", 1.0, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00},
      {"1 + half an ulp", 0x1.002p0, 0x3C00, 0x3C01, 0x3C00, 0x3C01, 0x3C00, 0x3C01},
      {"1 + 1.5 ulp", 0x1.006p0, 0x3C02, 0x3C02, 0x3C01, 0x3C02, 0x3C01, 0x3C01},
      {"-(1 + half an ulp)", -0x1.002p0, 0xBC00, 0xBC01, 0xBC00, 0xBC00, 0xBC01, 0xBC01},
      {"just under the tie", 0x1.001ffep0, 0x3C00, 0x3C00, 0x3C00, 0x3C01, 0x3C00, 0x3C01},
      {"just over the tie", 0x1.002002p0, 0x3C01, 0x3C01, 0x3C00, 0x3C01, 0x3C00, 0x3C01},
      {"under 2: a carry into the exponent", 0x1.ffep0, 0x4000, 0x4000, 0x3FFF, 0x4000, 0x3FFF,
       0x3FFF},
      {"2049: even below", 2049.0, 0x6800, 0x6801, 0x6800, 0x6801, 0x6800, 0x6801},
      {"2051: even above", 2051.0, 0x6802, 0x6802, 0x6801, 0x6802, 0x6801, 0x6801},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(from_double(kBinary16, c.x).bits == c.even);
    CHECK(from_double(kBinary16, c.x, {.rounding = Rounding::ties_to_away}).bits == c.away);
    CHECK(from_double(kBinary16, c.x, {.rounding = Rounding::toward_zero}).bits == c.zero);
    CHECK(from_double(kBinary16, c.x, {.rounding = Rounding::upward}).bits == c.up);
    CHECK(from_double(kBinary16, c.x, {.rounding = Rounding::downward}).bits == c.down);
    CHECK(from_double(kBinary16, c.x, {.rounding = Rounding::to_odd}).bits == c.odd);
  }
}

TEST_CASE("the other targets at their boundaries", "[number][convert][table]") {
  const double infinity = std::numeric_limits<double>::infinity();
  check(kFloat8E4M3, {"the largest finite", 448.0, 0x7E, kNone});
  check(kFloat8E4M3, {"464 is a tie: down to the even 448", 464.0, 0x7E, kInexact});
  check(kFloat8E4M3, {"just above 464: no infinity, NaN", 0x1.d000000000001p8, 0x7F, kOverflow});
  check(kFloat8E4M3, {"negative keeps its sign on NaN", -480.0, 0xFF, kOverflow});
  check(kFloat8E4M3, {"toward zero stays at 448", 1e9, 0x7E, kOverflow}, Rounding::toward_zero);
  check(kFloat8E4M3, {"infinity becomes NaN", infinity, 0x7F, kNone});
  check(kFloat8E4M3, {"2^-10, half the least: to zero", 0x1p-10, 0x00, kTiny});
  check(kFloat8E4M3, {"above 2^-10", 0x1.0000000000001p-10, 0x01, kTiny});
  check(kFloat8E4M3, {"7/8 of an octave under 2^-6: normal", 0x1.ep-7, 0x08, kTiny});
  check(kFloat8E4M3, {"240, where IEEE formats would end", 240.0, 0x77, kNone});
  check(kFloat8E5M2, {"the largest finite", 57344.0, 0x7B, kNone});
  check(kFloat8E5M2, {"just under the tie", 0x1.dffffp15, 0x7B, kInexact});
  check(kFloat8E5M2, {"61440: the tie goes up, to infinity", 61440.0, 0x7C, kOverflow});
  check(kFloat8E5M2, {"2^-17, half the least: to zero", 0x1p-17, 0x00, kTiny});
  check(kBfloat16, {"the tie under 1 + 2^-7", 0x1.01p0, 0x3F80, kInexact});
  check(kBfloat16, {"the largest finite", 0x1.fep127, 0x7F7F, kNone});
  check(kBfloat16, {"the tie at the top", 0x1.ffp127, 0x7F80, kOverflow});
  check(kBfloat16, {"half the least subnormal", 0x1p-134, 0x0000, kTiny});
  check(kTf32, {"ten bits of fraction", 0x1.004p0, 0x1FC01, kNone});
  check(kTf32, {"the tie under it", 0x1.002p0, 0x1FC00, kInexact});
  check(kBinary32, {"the largest binary32", 0x1.fffffep127, 0x7F7FFFFF, kNone});
  check(kBinary32, {"the tie at its top", 0x1.ffffffp127, 0x7F800000, kOverflow});
  check(kBinary32, {"half its least subnormal", 0x1p-150, 0x00000000, kTiny});
}

TEST_CASE("double rounding would go wrong here", "[number][convert][table]") {
  // By way of binary32 these land on a tie of binary16 and lose the bit that decides it.
  check(kBinary16, {"just over a tie", 0x1.0020000000001p0, 0x3C01, kInexact});
  check(kBinary16, {"just under a tie", 0x1.005ffffffffffp0, 0x3C01, kInexact});
  check(kBinary16, {"just over half the least subnormal", 0x1.0000000000001p-25, 0x0001, kTiny});
  check(kBinary16, {"just under the overflow tie", 0x1.ffdffffffffffp15, 0x7BFF, kInexact});
}

TEST_CASE("NaN keeps sign and top payload, quieted", "[number][convert][table]") {
  struct Case {
    const char* what;
    Format to, from;
    std::uint64_t bits, want;
    bool invalid;
  };
  const Case cases[] = {
      {"canonical", kBinary16, kBinary32, 0x7FC00000, 0x7E00, false},
      {"negative", kBinary16, kBinary32, 0xFFC00000, 0xFE00, false},
      {"quiet, top payload bits stay", kBinary16, kBinary32, 0x7FD54000, 0x7EAA, false},
      {"quiet, low payload bits go", kBinary16, kBinary32, 0x7FC01FFF, 0x7E00, false},
      {"signaling: quieted, invalid", kBinary16, kBinary32, 0x7F802000, 0x7E01, true},
      {"signaling with only low bits: not an infinity", kBinary16, kBinary32, 0x7F800001, 0x7E00,
       true},
      {"widening shifts the payload up", kBinary32, kBinary16, 0x7EAA, 0x7FD54000, false},
      {"widening a signaling one", kBinary32, kBinary16, 0xFC01, 0xFFC02000, true},
      {"to its own format: quieted", kBinary16, kBinary16, 0x7C01, 0x7E01, true},
      {"into E4M3's only NaN", kFloat8E4M3, kBinary16, 0x7EAA, 0x7F, false},
      {"signaling into E4M3", kFloat8E4M3, kBinary16, 0xFC01, 0xFF, true},
      {"from E4M3: canonical", kBinary16, kFloat8E4M3, 0xFF, 0xFE00, false},
      {"from binary64", kBinary16, kBinary64, 0x7FF8000000000001, 0x7E00, false},
      {"signaling binary64 into bfloat16", kBfloat16, kBinary64, 0xFFF0000000000001, 0xFFC0, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const Rounded r = convert(c.to, c.from, c.bits);
    CHECK(r.bits == c.want);
    CHECK(r.flags == Flags{.invalid = c.invalid});
  }
}

TEST_CASE("bits above the width are not part of an encoding", "[number][convert][table]") {
  CHECK(convert(kBinary32, kBinary16, 0xFFFFFFFFFFFF3C00).bits == 0x3F800000);
  CHECK(convert(kBinary32, kFloat8E4M3, 0xABCDEF38).bits == 0x3F800000);
}

// Everything is usable in constant expressions.
static_assert(from_double(kBinary16, 65520.0).bits == kBinary16.infinity());
static_assert(from_float(kBinary16, 0x1p-25f).bits == 0);
static_assert(to_double(kFloat8E4M3, kFloat8E4M3.largest_finite()) == 448.0);

}  // namespace test_convert_rows
