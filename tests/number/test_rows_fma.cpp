// SPDX-License-Identifier: Apache-2.0
// Rows of fusedMultiplyAdd, a * b + c rounded once. In binary16: 3C00 is 1, 0001 is 2^-24.
// Results by hand from IEEE 754-2019, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/rows.hpp"

namespace test_rows_fma {

using namespace rows;

const Table kFma(
    "binary16 fma", halfscope::kBinary16, ternary<halfscope::fused_multiply_add>,
    {
        {"1 * 1 + 1", {0x3C00, 0x3C00, 0x3C00}, 0x4000},
        {"2 * 3 - 6 is +0", {0x4000, 0x4200, 0xC600}, 0x0000},
        {"2 * 3 - 6 downward is -0", {0x4000, 0x4200, 0xC600}, 0x8000, kNone, kDown},
        {"-2 * 3 + 6 is +0", {0xC000, 0x4200, 0x4600}, 0x0000},
        {"the product is not rounded: (1 + ulp)^2 - (1 + 2 ulp)", {0x3C01, 0x3C01, 0xBC02}, 0x0010},
        {"the same with the product's sign", {0xBC01, 0x3C01, 0x3C02}, 0x8010},
        {"(1 + ulp)(1 - ulp) - 1 = -2^-20", {0x3C01, 0x3BFE, 0xBC00}, 0x8010},
        {"1.5 (1 + ulp) alone: tie to even, up", {0x3E00, 0x3C01, 0x0000}, 0x3E02, kInexact},
        {"1.5 (1 + 3 ulp) alone: tie to even, down", {0x3E00, 0x3C03, 0x0000}, 0x3E04, kInexact},
        {"a trace above that tie: up", {0x3E00, 0x3C03, 0x0001}, 0x3E05, kInexact},
        {"a trace below that tie: down", {0x3E00, 0x3C03, 0x8001}, 0x3E04, kInexact},
        {"a trace below the odd tie: down", {0x3E00, 0x3C01, 0x8001}, 0x3E01, kInexact},
        {"a trace above the odd tie: up", {0x3E00, 0x3C01, 0x0001}, 0x3E02, kInexact},
        {"negative, a trace away from zero of the tie", {0xBE00, 0x3C03, 0x8001}, 0xBE05, kInexact},
        {"negative, a trace toward zero of the tie", {0xBE00, 0x3C01, 0x0001}, 0xBE01, kInexact},
        {"a trace above the tie, away", {0x3E00, 0x3C03, 0x0001}, 0x3E05, kInexact, kAway},
        {"a trace below the tie, away: down", {0x3E00, 0x3C03, 0x8001}, 0x3E04, kInexact, kAway},
        {"a product trace beside c: upward", {0x0001, 0x0001, 0x3C01}, 0x3C02, kInexact, kUp},
        {"a product trace beside c: downward", {0x0001, 0x8001, 0x3C01}, 0x3C00, kInexact, kDown},
        {"a product trace beside c: to odd", {0x0001, 0x0001, 0x3C00}, 0x3C01, kInexact, kOdd},
        {"a trace below 1, to odd", {0x0001, 0x8001, 0x3C00}, 0x3BFF, kInexact, kOdd},
        {"a trace below 1, toward zero", {0x0001, 0x8001, 0x3C00}, 0x3BFF, kInexact, kToZero},
        {"1 + 2^-48 to nearest", {0x0001, 0x0001, 0x3C00}, 0x3C00, kInexact},
        {"c far below the product, upward", {0x5C00, 0x5800, 0x0001}, 0x7801, kInexact, kUp},
        {"c far below the product, downward", {0x5C00, 0x5800, 0x8001}, 0x77FF, kInexact, kDown},
    });

// binary32 keeps 24 digits of the sum; where it drops a trace beside a tie of 11 digits, a second
// rounding goes the wrong way (Boldo and Melquiond 2008).
const Table kFmaTwice(
    "binary16 fma, wrong through binary32", halfscope::kBinary16,
    ternary<halfscope::fused_multiply_add>,
    {
        {"the published case: C1BF, not C1BE", {0x39C0, 0xC3FE, 0x07FE}, 0xC1BF, kInexact},
        {"3F14 * 401C - ..: 4345, not 4346", {0x3F14, 0x401C, 0x8601}, 0x4345, kInexact},
        {"396E * 47C0 - ..: 4543, not 4542", {0x396E, 0x47C0, 0x8BFE}, 0x4543, kInexact},
        {"40B6 * -42EC - ..: C813, not C814", {0x40B6, 0xC2EC, 0x8AFF}, 0xC813, kInexact},
        {"4720 * 43B2 - ..: 4EDB, not 4EDA", {0x4720, 0x43B2, 0x8FFD}, 0x4EDB, kInexact},
        {"3DC6 * -456A - ..: C7D1, not C7D0", {0x3DC6, 0xC56A, 0x8101}, 0xC7D1, kInexact},
        {"3CAC * 3C4A + ..: 3D03, not 3D02", {0x3CAC, 0x3C4A, 0x0481}, 0x3D03, kInexact},
        {"4212 * 411B + ..: 47BF, not 47C0", {0x4212, 0x411B, 0x067E}, 0x47BF, kInexact},
        {"383B * -4255 - ..: BEB3, not BEB2", {0x383B, 0xC255, 0x8691}, 0xBEB3, kInexact},
        {"4042 * -38B1 - ..: BCFF, not BCFE", {0x4042, 0xB8B1, 0x85E1}, 0xBCFF, kInexact},
    });

const Table kFmaEdges(
    "binary16 fma, top and bottom", halfscope::kBinary16, ternary<halfscope::fused_multiply_add>,
    {
        {"65504 * 2 - 65504: back in range", {0x7BFF, 0x4000, 0xFBFF}, 0x7BFF},
        {"256 * 256 - 32 is the largest number", {0x5C00, 0x5C00, 0xD000}, 0x7BFF},
        {"256 * 256 - 16: the tie, infinity", {0x5C00, 0x5C00, 0xCC00}, 0x7C00, kOverflow},
        {"256 * 256 - just above 16", {0x5C00, 0x5C00, 0xCC01}, 0x7BFF, kInexact},
        {"2^16 - 16 toward zero: no overflow", {0x5C00, 0x5C00, 0xCC00}, 0x7BFF, kInexact, kToZero},
        {"2^16 toward zero: overflow", {0x5C00, 0x5C00, 0x0000}, 0x7BFF, kOverflow, kToZero},
        {"-256 * 256 downward", {0xDC00, 0x5C00, 0x0000}, 0xFC00, kOverflow, kDown},
        {"-256 * 256 upward", {0xDC00, 0x5C00, 0x0000}, 0xFBFF, kOverflow, kUp},
        {"65504 and a trace, upward", {0x0001, 0x0001, 0x7BFF}, 0x7C00, kOverflow, kUp},
        {"65504 * 65504 + 65504 saturated", {0x7BFF, 0x7BFF, 0x7BFF}, 0x7BFF, kOverflow, kSaturate},
        {"2^-14 - 2^-27: not tiny after", {0x0C00, 0x8200, 0x0400}, 0x0400, kInexact},
        {"2^-14 - 2^-27: tiny before", {0x0C00, 0x8200, 0x0400}, 0x0400, kTiny, before(kEven)},
        {"2^-14 - 2^-26: the tie, not tiny after", {0x0C00, 0x8400, 0x0400}, 0x0400, kInexact},
        {"just below that tie: tiny after", {0x0C01, 0x8400, 0x0400}, 0x0400, kTiny},
        {"2^-14 - 2^-25: tie to the normal, tiny", {0x0C00, 0x8800, 0x0400}, 0x0400, kTiny},
        {"just below: the largest subnormal", {0x0C01, 0x8800, 0x0400}, 0x03FF, kTiny},
        {"2^-14 - 2^-24 is exact: nothing raised", {0x0C00, 0x8C00, 0x0400}, 0x03FF},
        {"half of the least + the least: tie to even, up", {0x0001, 0x3800, 0x0001}, 0x0002, kTiny},
        {"half of the least - the least: tie to -0", {0x0001, 0x3800, 0x8001}, 0x8000, kTiny},
        {"2^-24 - 2^-48, downward", {0x8001, 0x0001, 0x0001}, 0x0000, kTiny, kDown},
        {"flushed: tiny after rounding", {0x0C01, 0x8400, 0x0400}, 0x0000, kTiny, kFtz},
        {"flushed: not tiny after rounding", {0x0C00, 0x8200, 0x0400}, 0x0400, kInexact, kFtz},
        {"flushed: tiny before rounding", {0x0C00, 0x8200, 0x0400}, 0x0000, kTiny, before(kFtz)},
        {"DAZ: of a, b and c", {0x0001, 0x7800, 0x8001}, 0x0000, kNone, kDaz},
        {"DAZ: c alone", {0x3C00, 0x3C00, 0x03FF}, 0x3C00, kNone, kDaz},
    });

const Table kFmaSpecial(
    "binary16 fma, zeros and infinities", halfscope::kBinary16,
    ternary<halfscope::fused_multiply_add>,
    {
        {"0 * 1 + 0", {0x0000, 0x3C00, 0x0000}, 0x0000},
        {"-0 * 1 + -0 is -0", {0x8000, 0x3C00, 0x8000}, 0x8000},
        {"-0 * 1 + 0 is +0", {0x8000, 0x3C00, 0x0000}, 0x0000},
        {"-0 * 1 + 0 downward is -0", {0x8000, 0x3C00, 0x0000}, 0x8000, kNone, kDown},
        {"0 * -1 + -0 is -0: the product's sign counts", {0x0000, 0xBC00, 0x8000}, 0x8000},
        {"2^-48 + 0 rounds to zero, is none", {0x0001, 0x0001, 0x0000}, 0x0000, kTiny},
        {"-2^-48 + 0 is -0: the sum is not exactly zero", {0x8001, 0x0001, 0x0000}, 0x8000, kTiny},
        {"0 * x + c is c", {0x0000, 0x7BFF, 0x0001}, 0x0001},
        {"infinity * 1 + -65504", {0x7C00, 0x3C00, 0xFBFF}, 0x7C00},
        {"infinity * -1 + 1", {0x7C00, 0xBC00, 0x3C00}, 0xFC00},
        {"infinity * 1 + infinity", {0x7C00, 0x3C00, 0x7C00}, 0x7C00},
        {"infinity * 1 - infinity is invalid", {0x7C00, 0x3C00, 0xFC00}, 0xFE00, kInvalid},
        {"infinity * -1 + infinity is invalid", {0x7C00, 0xBC00, 0x7C00}, 0xFE00, kInvalid},
        {"infinity * 0 + 1 is invalid", {0x7C00, 0x0000, 0x3C00}, 0xFE00, kInvalid},
        {"0 * -infinity + infinity is invalid", {0x0000, 0xFC00, 0x7C00}, 0xFE00, kInvalid},
        {"a finite product that overflows - infinity", {0x7BFF, 0x7BFF, 0xFC00}, 0xFC00},
        {"saturated: c infinite", {0x3C00, 0x3C00, 0xFC00}, 0xFBFF, kNone, kSaturate},
    });

const Table kFmaBinary32(
    "binary32 fma", halfscope::kBinary32, ternary<halfscope::fused_multiply_add>,
    {
        {"(1 + ulp)^2 - (1 + 2 ulp) = 2^-46", {0x3F800001, 0x3F800001, 0xBF800002}, 0x28800000},
        {"a trace above the tie", {0x3FC00000, 0x3F800003, 0x00000001}, 0x3FC00005, kInexact},
        {"a trace below the tie", {0x3FC00000, 0x3F800001, 0x80000001}, 0x3FC00001, kInexact},
        {"the largest * 2 - the largest", {0x7F7FFFFF, 0x40000000, 0xFF7FFFFF}, 0x7F7FFFFF},
    });

const Table kFmaBfloat16(
    "bfloat16 fma", halfscope::kBfloat16, ternary<halfscope::fused_multiply_add>,
    {
        {"(1 + ulp)^2 - (1 + 2 ulp) = 2^-14", {0x3F81, 0x3F81, 0xBF82}, 0x3880},
        {"a trace beyond 24 digits, above the tie", {0x3FC0, 0x3F83, 0x0001}, 0x3FC5, kInexact},
        {"and below the tie", {0x3FC0, 0x3F81, 0x8001}, 0x3FC1, kInexact},
        {"half of 3 * 2^-133: tie to even, up", {0x0003, 0x3F00, 0x0000}, 0x0002, kTiny},
    });

TEST_CASE("rows: fma", "[number][rows][table]") {
  kFma.check();
  kFmaEdges.check();
  kFmaSpecial.check();
}

TEST_CASE("rows: fma where rounding to binary32 first is wrong", "[number][rows][table]") {
  kFmaTwice.check();
}

TEST_CASE("rows: fma in other formats", "[number][rows][table]") {
  kFmaBinary32.check();
  kFmaBfloat16.check();
}

}  // namespace test_rows_fma
