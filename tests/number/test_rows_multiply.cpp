// SPDX-License-Identifier: Apache-2.0
// Rows of multiply. In binary16: 3C00 is 1, 0400 is 2^-14, the smallest normal, 0001 is 2^-24.
// Results by hand from IEEE 754-2019, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/rows.hpp"

namespace test_rows_multiply {

using namespace rows;

const Table kMultiply(
    "binary16 multiply", halfscope::kBinary16, binary<halfscope::multiply>,
    {
        {"1 * x is x", {0x3C00, 0x1234}, 0x1234},
        {"2 * 3 is 6", {0x4000, 0x4200}, 0x4600},
        {"(1 + ulp)^2 = 1 + 2 ulp + 2^-20: down", {0x3C01, 0x3C01}, 0x3C02, kInexact},
        {"the same, upward", {0x3C01, 0x3C01}, 0x3C03, kInexact, kUp},
        {"the same, to odd", {0x3C01, 0x3C01}, 0x3C03, kInexact, kOdd},
        {"-(1 + ulp)^2, upward: toward zero", {0xBC01, 0x3C01}, 0xBC02, kInexact, kUp},
        {"-(1 + ulp)^2, downward: away from zero", {0xBC01, 0x3C01}, 0xBC03, kInexact, kDown},
        {"two minuses are a plus for upward", {0xBC01, 0xBC01}, 0x3C03, kInexact, kUp},
        {"1.5 * (1 + ulp): a tie to the even, up", {0x3E00, 0x3C01}, 0x3E02, kInexact},
        {"the same tie, toward zero", {0x3E00, 0x3C01}, 0x3E01, kInexact, kToZero},
        {"1.5 * (1 + 3 ulp): a tie to the even, down", {0x3E00, 0x3C03}, 0x3E04, kInexact},
        {"the same tie, away", {0x3E00, 0x3C03}, 0x3E05, kInexact, kAway},
        {"(2 - ulp)^2: 2 ulp under 4 and a rest", {0x3FFF, 0x3FFF}, 0x43FE, kInexact},
        {"(2 - ulp)^2, upward", {0x3FFF, 0x3FFF}, 0x43FF, kInexact, kUp},
        {"(1 + ulp)(2 - 2 ulp) just under 2: carry to 2", {0x3C01, 0x3FFE}, 0x4000, kInexact},
        {"just under 2, toward zero: 2 - ulp", {0x3C01, 0x3FFE}, 0x3FFF, kInexact, kToZero},
        {"an exact product of 11 digits: 33 * 31 = 1023", {0x5020, 0x4FC0}, 0x63FE},
    });

const Table kMultiplyTop(
    "binary16 multiply, overflow", halfscope::kBinary16, binary<halfscope::multiply>,
    {
        {"65504 * 1", {0x7BFF, 0x3C00}, 0x7BFF},
        {"65504 * (1 + ulp): above the tie, infinity", {0x7BFF, 0x3C01}, 0x7C00, kOverflow},
        {"65504 * 2", {0x7BFF, 0x4000}, 0x7C00, kOverflow},
        {"-65504 * 2", {0xFBFF, 0x4000}, 0xFC00, kOverflow},
        {"-65504 * 2, toward zero", {0xFBFF, 0x4000}, 0xFBFF, kOverflow, kToZero},
        {"-65504 * 2, upward", {0xFBFF, 0x4000}, 0xFBFF, kOverflow, kUp},
        {"-65504 * 2, downward", {0xFBFF, 0x4000}, 0xFC00, kOverflow, kDown},
        {"65504 * 2, downward", {0x7BFF, 0x4000}, 0x7BFF, kOverflow, kDown},
        {"65504 * 2, to odd", {0x7BFF, 0x4000}, 0x7BFF, kOverflow, kOdd},
        {"65504 * 2, away", {0x7BFF, 0x4000}, 0x7C00, kOverflow, kAway},
        {"256 * 256 is 2^16: overflow", {0x5C00, 0x5C00}, 0x7C00, kOverflow},
        {"260 * 252 = 65520, the tie: overflow", {0x5C10, 0x5BE0}, 0x7C00, kOverflow},
        {"65520, toward zero: no overflow", {0x5C10, 0x5BE0}, 0x7BFF, kInexact, kToZero},
        {"65520, upward", {0x5C10, 0x5BE0}, 0x7C00, kOverflow, kUp},
        {"65520, downward", {0x5C10, 0x5BE0}, 0x7BFF, kInexact, kDown},
        {"257 * 255 = 65535, under 2^16 but above the tie", {0x5C04, 0x5BF8}, 0x7C00, kOverflow},
        {"65535, to odd: 65504", {0x5C04, 0x5BF8}, 0x7BFF, kInexact, kOdd},
        {"65504 * 65504 saturated", {0x7BFF, 0x7BFF}, 0x7BFF, kOverflow, kSaturate},
    });

// 2^-14 - 2^-26 is where 11 digits round to 2^-14: tiny before rounding, not after. 2^-14 - 2^-25
// is the tie between the largest subnormal and 2^-14: between the two the result is normal, and
// tiny.
const Table kMultiplyTiny(
    "binary16 multiply, tininess", halfscope::kBinary16, binary<halfscope::multiply>,
    {
        {"1023 * 1025: 2^-14 - 2^-34, not tiny after", {0x03FF, 0x3C01}, 0x0400, kInexact},
        {"the same is tiny before", {0x03FF, 0x3C01}, 0x0400, kTiny, before(kEven)},
        {"its negative is not tiny after", {0x83FF, 0x3C01}, 0x8400, kInexact},
        {"its negative is tiny before", {0x83FF, 0x3C01}, 0x8400, kTiny, before(kEven)},
        {"1040 * 2016: exactly 2^-14 - 2^-26, tie to 2^-14", {0x2010, 0x1FE0}, 0x0400, kInexact},
        {"the tie is tiny before", {0x2010, 0x1FE0}, 0x0400, kTiny, before(kEven)},
        {"the tie, away, is not tiny after", {0x2010, 0x1FE0}, 0x0400, kInexact, kAway},
        {"1052 * 1993, just below that tie: tiny after", {0x201C, 0x1FC9}, 0x0400, kTiny},
        {"1123 * 1867, just above it: not tiny after", {0x2063, 0x1F4B}, 0x0400, kInexact},
        {"1123 * 1867 is tiny before", {0x2063, 0x1F4B}, 0x0400, kTiny, before(kEven)},
        {"1 * 2047: exactly 2^-14 - 2^-25, a normal and tiny", {0x2000, 0x1FFF}, 0x0400, kTiny},
        {"1025 * 2045, just below it: subnormal", {0x2001, 0x1FFD}, 0x03FF, kTiny},
        {"1070 * 1959, just above it: normal and tiny", {0x202E, 0x1FA7}, 0x0400, kTiny},
        {"upward, 11 digits carry from there on", {0x202E, 0x1FA7}, 0x0400, kInexact, kUp},
        {"upward, at 2^-14 - 2^-25 they do not", {0x2000, 0x1FFF}, 0x0400, kTiny, kUp},
        {"upward and negative is toward zero: tiny", {0x83FF, 0x3C01}, 0x83FF, kTiny, kUp},
        {"downward and negative carries: not tiny", {0x83FF, 0x3C01}, 0x8400, kInexact, kDown},
        {"toward zero: tiny", {0x03FF, 0x3C01}, 0x03FF, kTiny, kToZero},
        {"to odd: tiny", {0x03FF, 0x3C01}, 0x03FF, kTiny, kOdd},
        {"2^-7 * 2^-7 is the least normal", {0x2000, 0x2000}, 0x0400},
        {"an exact subnormal raises nothing", {0x2000, 0x1C00}, 0x0200},
        {"nor before rounding", {0x2000, 0x1C00}, 0x0200, kNone, before(kEven)},
        {"2^-12 * 2^-12 is the least subnormal", {0x0C00, 0x0C00}, 0x0001},
        {"2^-12 * 2^-13: tie to even zero", {0x0C00, 0x0800}, 0x0000, kTiny},
        {"the tie, away: the least subnormal", {0x0C00, 0x0800}, 0x0001, kTiny, kAway},
        {"just above the tie", {0x0C01, 0x0800}, 0x0001, kTiny},
        {"just below the tie", {0x0BFF, 0x0800}, 0x0000, kTiny},
        {"1.5 least subnormals: tie to even, up", {0x0E00, 0x0C00}, 0x0002, kTiny},
        {"2.5 least subnormals: tie to even, down", {0x1100, 0x0C00}, 0x0002, kTiny},
        {"2.5 of them, to odd", {0x1100, 0x0C00}, 0x0003, kTiny, kOdd},
        {"the least squared, upward: the least", {0x0001, 0x0001}, 0x0001, kTiny, kUp},
        {"the least squared, downward: zero", {0x0001, 0x0001}, 0x0000, kTiny, kDown},
        {"minus the least squared, downward", {0x8001, 0x0001}, 0x8001, kTiny, kDown},
        {"minus the least squared, to even: -0", {0x8001, 0x0001}, 0x8000, kTiny},
        {"the least squared, to odd: the least, not zero", {0x0001, 0x0001}, 0x0001, kTiny, kOdd},
        {"half of the least: tie to zero", {0x0001, 0x3800}, 0x0000, kTiny},
        {"half of three times the least: tie to even, up", {0x0003, 0x3800}, 0x0002, kTiny},
        {"flushed: an exact subnormal", {0x2000, 0x1C00}, 0x0000, kTiny, kFtz},
        {"flushed: negative", {0xA000, 0x1C00}, 0x8000, kTiny, kFtz},
        {"flushed: upward too",
         {0x0001, 0x0001},
         0x0000,
         kTiny,
         {.rounding = Rounding::upward, .flush_to_zero = true}},
        {"flushed: not tiny after rounding stays", {0x03FF, 0x3C01}, 0x0400, kInexact, kFtz},
        {"flushed: tiny before rounding goes", {0x03FF, 0x3C01}, 0x0000, kTiny, before(kFtz)},
        {"flushed: would be 2^-14, but tiny", {0x202E, 0x1FA7}, 0x0000, kTiny, kFtz},
        {"DAZ: an exact zero", {0x03FF, 0x7800}, 0x0000, kNone, kDaz},
        {"DAZ: with their sign", {0x83FF, 0x7800}, 0x8000, kNone, kDaz},
    });

const Table kMultiplySpecial(
    "binary16 multiply, zeros and infinities", halfscope::kBinary16, binary<halfscope::multiply>,
    {
        {"0 * x", {0x0000, 0x3C00}, 0x0000},
        {"0 * -x is -0", {0x0000, 0xBC00}, 0x8000},
        {"-0 * -x is +0", {0x8000, 0xBC00}, 0x0000},
        {"0 * -x downward is -0 as well", {0x0000, 0xBC00}, 0x8000, kNone, kDown},
        {"-0 * -x downward is +0: no sum is involved", {0x8000, 0xBC00}, 0x0000, kNone, kDown},
        {"-0 * -0 is +0", {0x8000, 0x8000}, 0x0000},
        {"infinity * -2", {0x7C00, 0xC000}, 0xFC00},
        {"-infinity * -infinity", {0xFC00, 0xFC00}, 0x7C00},
        {"infinity * the least subnormal", {0x7C00, 0x0001}, 0x7C00},
        {"infinity * 0 is invalid", {0x7C00, 0x0000}, 0xFE00, kInvalid},
        {"-0 * infinity is invalid", {0x8000, 0x7C00}, 0xFE00, kInvalid},
        {"DAZ: infinity * 0 is invalid", {0x7C00, 0x0001}, 0xFE00, kInvalid, kDaz},
        {"saturated infinity", {0x7C00, 0xC000}, 0xFBFF, kNone, kSaturate},
    });

const Table kMultiplyBfloat16(
    "bfloat16 multiply", halfscope::kBfloat16, binary<halfscope::multiply>,
    {
        {"1.5 * (1 + ulp): tie to the even, up", {0x3FC0, 0x3F81}, 0x3FC2, kInexact},
        {"2^-63 * 2^-63 is the least normal", {0x2000, 0x2000}, 0x0080},
        {"2^-66 * 2^-67 is the least subnormal", {0x1E80, 0x1E00}, 0x0001},
        {"2^-67 * 2^-67: tie to even zero", {0x1E00, 0x1E00}, 0x0000, kTiny},
        {"127 * 129: 2^-126 (1 - 2^-14), not tiny after", {0x007F, 0x3F81}, 0x0080, kInexact},
        {"and tiny before", {0x007F, 0x3F81}, 0x0080, kTiny, before(kEven)},
        {"2^64 * 2^64", {0x5F80, 0x5F80}, 0x7F80, kOverflow},
        {"2^64 * 2^63", {0x5F80, 0x5F00}, 0x7F00},
    });

const Table kMultiplyTf32(
    "tf32 multiply", halfscope::kTf32, binary<halfscope::multiply>,
    {
        {"1.5 * (1 + ulp): tie to the even, up", {0x1FE00, 0x1FC01}, 0x1FE02, kInexact},
        {"2^-68 * 2^-68 is the least subnormal", {0x0EC00, 0x0EC00}, 0x00001},
        {"2^-69 * 2^-68: tie to even zero", {0x0E800, 0x0EC00}, 0x00000, kTiny},
        {"1023 * 1025: 2^-126 (1 - 2^-20), not tiny after", {0x003FF, 0x1FC01}, 0x00400, kInexact},
        {"and tiny before", {0x003FF, 0x1FC01}, 0x00400, kTiny, before(kEven)},
        {"subnormal * 2 is exact", {0x003FF, 0x20000}, 0x007FE},
    });

const Table kMultiplyBinary32(
    "binary32 multiply", halfscope::kBinary32, binary<halfscope::multiply>,
    {
        {"(1 + ulp)^2 loses 2^-46", {0x3F800001, 0x3F800001}, 0x3F800002, kInexact},
        {"(1 + ulp)^2 upward", {0x3F800001, 0x3F800001}, 0x3F800003, kInexact, kUp},
        {"1.5 * (1 + ulp): tie to the even, up", {0x3FC00000, 0x3F800001}, 0x3FC00002, kInexact},
        {"just under 2^-126: not tiny after", {0x007FFFFF, 0x3F800001}, 0x00800000, kInexact},
        {"and tiny before: the same", {0x007FFFFF, 0x3F800001}, 0x00800000, kTiny, before(kEven)},
        {"2^-75 * 2^-75: tie to even zero", {0x1A000000, 0x1A000000}, 0x00000000, kTiny},
        {"the largest squared", {0x7F7FFFFF, 0x7F7FFFFF}, 0x7F800000, kOverflow},
    });

const Table kMultiplySmall(
    "e5m2 multiply", halfscope::kFloat8E5M2, binary<halfscope::multiply>,
    {
        {"1.25 * 1.25 = 1.5625: nearest 1.5", {0x3D, 0x3D}, 0x3E, kInexact},
        {"1.25 * 1.5 = 1.875: tie to the even 2", {0x3D, 0x3E}, 0x40, kInexact},
        {"1.75 * 1.5 = 2.625: above 2.5, nearest 2.5", {0x3F, 0x3E}, 0x41, kInexact},
        {"57344 * 1.25: infinity", {0x7B, 0x3D}, 0x7C, kOverflow},
        {"3.75 * 2^-16: 3 digits carry to 2^-14, not tiny after", {0x03, 0x3D}, 0x04, kInexact},
        {"and tiny before, with the same bits", {0x03, 0x3D}, 0x04, kTiny, before(kEven)},
    });

const Table kMultiplyE2M1(
    "e2m1 multiply", halfscope::kFloat4E2M1, binary<halfscope::multiply>,
    {
        {"2 * 3 is 6, the largest", {0x4, 0x5}, 0x7},
        {"3 * 3 = 9 overflows to 6", {0x5, 0x5}, 0x7, kOverflow},
        {"-3 * 3 overflows to -6", {0xD, 0x5}, 0xF, kOverflow},
        {"0.5 * 0.5: tie to even zero", {0x1, 0x1}, 0x0, kTiny},
        {"0.5 * 1.5 = 0.75: tie to the even 1, and tiny", {0x1, 0x3}, 0x2, kTiny},
        {"1.5 * 1.5 = 2.25: nearest 2", {0x3, 0x3}, 0x4, kInexact},
    });

TEST_CASE("rows: multiply", "[number][rows][table]") {
  kMultiply.check();
  kMultiplyTop.check();
  kMultiplyTiny.check();
  kMultiplySpecial.check();
}

TEST_CASE("rows: multiply in other formats", "[number][rows][table]") {
  kMultiplyBfloat16.check();
  kMultiplyTf32.check();
  kMultiplyBinary32.check();
  kMultiplySmall.check();
  kMultiplyE2M1.check();
}

}  // namespace test_rows_multiply
