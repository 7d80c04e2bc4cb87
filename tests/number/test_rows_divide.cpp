// SPDX-License-Identifier: Apache-2.0
// Rows of divide, square root and remainder. In binary16: 3C00 is 1, 4200 is 3.
// Results by hand from IEEE 754-2019, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/remainder.hpp"
#include "number/rows.hpp"

namespace test_rows_divide {

using namespace rows;

// A quotient of two 11-digit significands is never a tie of 11 digits: ties are subnormal.
const Table kDivide(
    "binary16 divide", halfscope::kBinary16, binary<halfscope::divide>,
    {
        {"6 / 3 is exact", {0x4600, 0x4200}, 0x4000},
        {"1 / 3 = 0.0101..: down", {0x3C00, 0x4200}, 0x3555, kInexact},
        {"1 / 3 upward", {0x3C00, 0x4200}, 0x3556, kInexact, kUp},
        {"1 / 3 to odd: 3555 is odd", {0x3C00, 0x4200}, 0x3555, kInexact, kOdd},
        {"-1 / 3 upward", {0xBC00, 0x4200}, 0xB555, kInexact, kUp},
        {"-1 / 3 downward", {0xBC00, 0x4200}, 0xB556, kInexact, kDown},
        {"2 / 3 = 0.1010..: up past half", {0x4000, 0x4200}, 0x3955, kInexact},
        {"2 / 3 toward zero", {0x4000, 0x4200}, 0x3955, kInexact, kToZero},
        {"2 / 3 upward", {0x4000, 0x4200}, 0x3956, kInexact, kUp},
        {"1 / (1 + ulp): just under 1", {0x3C00, 0x3C01}, 0x3BFE, kInexact},
        {"1 / (1 - 2^-11): just above 1 + 2^-11", {0x3C00, 0x3BFF}, 0x3C01, kInexact},
        {"(1 + 2 ulp) / (1 + ulp)", {0x3C02, 0x3C01}, 0x3C01, kInexact},
        {"1 / 10", {0x3C00, 0x4900}, 0x2E66, kInexact},
        {"65504 / 1", {0x7BFF, 0x3C00}, 0x7BFF},
        {"65504 / (1 - 2^-11) is 2^16: overflow", {0x7BFF, 0x3BFF}, 0x7C00, kOverflow},
        {"65504 / 0.5 toward zero", {0x7BFF, 0x3800}, 0x7BFF, kOverflow, kToZero},
        {"1 / the least subnormal is 2^24: overflow", {0x3C00, 0x0001}, 0x7C00, kOverflow},
        {"-1 / the least subnormal, upward: -largest", {0xBC00, 0x0001}, 0xFBFF, kOverflow, kUp},
        {"1 / the least subnormal, saturated", {0x3C00, 0x0001}, 0x7BFF, kOverflow, kSaturate},
        {"the least subnormal by itself", {0x0001, 0x0001}, 0x3C00},
        {"subnormal by subnormal: 3 / 2", {0x0003, 0x0002}, 0x3E00},
        {"the least subnormal / 2: tie to even zero", {0x0001, 0x4000}, 0x0000, kTiny},
        {"three of them / 2: tie to even, up", {0x0003, 0x4000}, 0x0002, kTiny},
        {"the least subnormal / 2, away", {0x0001, 0x4000}, 0x0001, kTiny, kAway},
        {"the least subnormal / 3: below the tie", {0x0001, 0x4200}, 0x0000, kTiny},
        {"two of them / 3: above the tie", {0x0002, 0x4200}, 0x0001, kTiny},
        {"the least subnormal / 65504, upward", {0x0001, 0x7BFF}, 0x0001, kTiny, kUp},
        {"the least subnormal / -65504, to even: -0", {0x0001, 0xFBFF}, 0x8000, kTiny},
        {"the least normal / 2 is exact: no underflow", {0x0400, 0x4000}, 0x0200},
        {"2047 / 2048 of the least normal: 2^-14 - 2^-25, tiny", {0x07FF, 0x4000}, 0x0400, kTiny},
        {"the same tie, toward zero", {0x07FF, 0x4000}, 0x03FF, kTiny, kToZero},
        {"the same tie, away", {0x07FF, 0x4000}, 0x0400, kTiny, kAway},
        {"upward: it is 11 digits already, so tiny", {0x07FF, 0x4000}, 0x0400, kTiny, kUp},
        {"flushed: an exact subnormal", {0x0400, 0x4000}, 0x0000, kTiny, kFtz},
    });

const Table kDivideSpecial(
    "binary16 divide, zeros and infinities", halfscope::kBinary16, binary<halfscope::divide>,
    {
        {"1 / 0", {0x3C00, 0x0000}, 0x7C00, kByZero},
        {"1 / -0", {0x3C00, 0x8000}, 0xFC00, kByZero},
        {"-1 / -0", {0xBC00, 0x8000}, 0x7C00, kByZero},
        {"1 / 0 toward zero is exact: infinity", {0x3C00, 0x0000}, 0x7C00, kByZero, kToZero},
        {"-1 / 0 upward is -infinity", {0xBC00, 0x0000}, 0xFC00, kByZero, kUp},
        {"1 / 0 saturated", {0x3C00, 0x0000}, 0x7BFF, kByZero, kSaturate},
        {"0 / 0 is invalid, not division by zero", {0x0000, 0x0000}, 0xFE00, kInvalid},
        {"-0 / 0", {0x8000, 0x0000}, 0xFE00, kInvalid},
        {"infinity / infinity", {0x7C00, 0xFC00}, 0xFE00, kInvalid},
        {"infinity / 0 is exact", {0x7C00, 0x0000}, 0x7C00},
        {"infinity / -0", {0x7C00, 0x8000}, 0xFC00},
        {"infinity / -1", {0x7C00, 0xBC00}, 0xFC00},
        {"1 / infinity", {0x3C00, 0x7C00}, 0x0000},
        {"-1 / infinity is -0", {0xBC00, 0x7C00}, 0x8000},
        {"0 / infinity", {0x0000, 0x7C00}, 0x0000},
        {"0 / -3", {0x0000, 0xC200}, 0x8000},
        {"-0 / -3", {0x8000, 0xC200}, 0x0000},
        {"DAZ: 1 / a subnormal", {0x3C00, 0x8001}, 0xFC00, kByZero, kDaz},
        {"DAZ: both of them", {0x0001, 0x0001}, 0xFE00, kInvalid, kDaz},
        {"a NaN / 0 divides nothing by zero", {0x7E01, 0x0000}, 0x7E01},
    });

const Table kDivideOther(
    "e4m3 divide", halfscope::kFloat8E4M3, binary<halfscope::divide>,
    {
        {"1 / 3: 0.34375 is 1.375 / 4", {0x38, 0x44}, 0x2B, kInexact},
        {"1 / 0 has no infinity: NaN", {0x38, 0x00}, 0x7F, kByZero},
        {"-1 / 0", {0xB8, 0x00}, 0xFF, kByZero},
        {"1 / 0 saturated", {0x38, 0x00}, 0x7E, kByZero, kSaturate},
        {"0 / 0", {0x00, 0x00}, 0xFF, kInvalid},
        {"448 / 0.9375 = 477.9: overflow", {0x7E, 0x37}, 0x7F, kOverflow},
        {"416 / 0.875 = 475.4, toward zero: 448", {0x7D, 0x36}, 0x7E, kInexact, kToZero},
    });

const Table kDivideFinite("e3m2 divide", halfscope::kFloat6E3M2, binary<halfscope::divide>,
                          {
                              {"1 / 0 has no infinity and no NaN: 28", {0x0C, 0x00}, 0x1F, kByZero},
                              {"-1 / 0: -28", {0x2C, 0x00}, 0x3F, kByZero},
                              {"0 / 0: 28, invalid", {0x00, 0x00}, 0x1F, kInvalid},
                              {"-0 / 0: 28 as well", {0x20, 0x00}, 0x1F, kInvalid},
                          });

const Table kRoot(
    "binary16 square root", halfscope::kBinary16, unary<halfscope::square_root>,
    {
        {"4 is a square", {0x4400}, 0x4000},
        {"2 = 1.0110101000 0010..", {0x4000}, 0x3DA8, kInexact},
        {"2 upward", {0x4000}, 0x3DA9, kInexact, kUp},
        {"3, nearest is up", {0x4200}, 0x3EEE, kInexact},
        {"3 toward zero", {0x4200}, 0x3EED, kInexact, kToZero},
        {"0.25", {0x3400}, 0x3800},
        {"1 + ulp: just below the tie 1 + ulp / 2", {0x3C01}, 0x3C00, kInexact},
        {"1 + ulp, away: it is no tie", {0x3C01}, 0x3C00, kInexact, kAway},
        {"1 + ulp, upward", {0x3C01}, 0x3C01, kInexact, kUp},
        {"1 + 2 ulp: just below 1 + ulp", {0x3C02}, 0x3C01, kInexact},
        {"1 + 2 ulp, toward zero", {0x3C02}, 0x3C00, kInexact, kToZero},
        {"1 - 2^-11: just below the tie under 1", {0x3BFF}, 0x3BFF, kInexact},
        {"the largest under 4: just under 2", {0x43FF}, 0x3FFF, kInexact},
        {"the largest number: 255.9", {0x7BFF}, 0x5BFF, kInexact},
        {"the largest number, upward: 256", {0x7BFF}, 0x5C00, kInexact, kUp},
        {"the least subnormal is 2^-24: exact", {0x0001}, 0x0C00},
        {"twice the least: an odd exponent", {0x0002}, 0x0DA8, kInexact},
        {"the largest subnormal", {0x03FF}, 0x1FFF, kInexact},
        {"the least normal", {0x0400}, 0x2000},
        {"(1 + ulp)^2 has more digits: 1 + 2 ulp, to odd", {0x3C02}, 0x3C01, kInexact, kOdd},
        {"+0 is +0", {0x0000}, 0x0000},
        {"-0 is -0", {0x8000}, 0x8000},
        {"infinity", {0x7C00}, 0x7C00},
        {"-1 is invalid", {0xBC00}, 0xFE00, kInvalid},
        {"-infinity is invalid", {0xFC00}, 0xFE00, kInvalid},
        {"minus the least subnormal is invalid", {0x8001}, 0xFE00, kInvalid},
        {"DAZ: minus the least is -0", {0x8001}, 0x8000, kNone, kDaz},
        {"DAZ: +0", {0x03FF}, 0x0000, kNone, kDaz},
        {"saturated infinity", {0x7C00}, 0x7BFF, kNone, kSaturate},
        {"a root is never subnormal: flushing changes nothing", {0x0001}, 0x0C00, kNone, kFtz},
        {"9 * 2^10", {0x7080}, 0x5600},
    });

const Table kRootBinary32("binary32 square root", halfscope::kBinary32,
                          unary<halfscope::square_root>,
                          {
                              {"2, 24 digits", {0x40000000}, 0x3FB504F3, kInexact},
                              {"1 + ulp: below the tie", {0x3F800001}, 0x3F800000, kInexact},
                              {"1 - ulp", {0x3F7FFFFF}, 0x3F7FFFFF, kInexact},
                              {"the least subnormal, 2^-149", {0x00000001}, 0x1A3504F3, kInexact},
                              {"the largest", {0x7F7FFFFF}, 0x5F7FFFFF, kInexact},
                          });

// x - n * y with n the integer nearest to x / y, to the even one in a tie (5.3.1).
const Table kRemainder(
    "binary16 remainder", halfscope::kBinary16, binary<halfscope::remainder>,
    {
        {"5 rem 3: n = 2, -1", {0x4500, 0x4200}, 0xBC00},
        {"4 rem 3: n = 1", {0x4400, 0x4200}, 0x3C00},
        {"-5 rem 3", {0xC500, 0x4200}, 0x3C00},
        {"5 rem -3: the divisor's sign does not matter", {0x4500, 0xC200}, 0xBC00},
        {"1 rem 2: n = 0.5, tie to the even 0", {0x3C00, 0x4000}, 0x3C00},
        {"3 rem 2: n = 1.5, tie to the even 2", {0x4200, 0x4000}, 0xBC00},
        {"5 rem 2: n = 2.5, tie to the even 2", {0x4500, 0x4000}, 0x3C00},
        {"7 rem 2: n = 3.5, tie to the even 4", {0x4700, 0x4000}, 0xBC00},
        {"-1 rem 2", {0xBC00, 0x4000}, 0xBC00},
        {"-3 rem 2", {0xC200, 0x4000}, 0x3C00},
        {"just over half the divisor: n = 1", {0x3C01, 0x4000}, 0xBBFE},
        {"just under half the divisor: n = 0", {0x3BFF, 0x4000}, 0x3BFF},
        {"below a quarter of the divisor", {0x3400, 0x4000}, 0x3400},
        {"the directions do not matter: 5 rem 3 upward", {0x4500, 0x4200}, 0xBC00, kNone, kUp},
        {"nor toward zero", {0x4500, 0x4200}, 0xBC00, kNone, kToZero},
        {"x rem x is +0", {0x4200, 0x4200}, 0x0000},
        {"-x rem x is -0: the sign of x", {0xC200, 0x4200}, 0x8000},
        {"x rem -x is +0", {0x4200, 0xC200}, 0x0000},
        {"6 rem 3 downward is +0 too", {0x4600, 0x4200}, 0x0000, kNone, kDown},
        {"0 rem 3", {0x0000, 0x4200}, 0x0000},
        {"-0 rem 3", {0x8000, 0x4200}, 0x8000},
        {"3 rem infinity is 3", {0x4200, 0x7C00}, 0x4200},
        {"-0 rem -infinity is -0", {0x8000, 0xFC00}, 0x8000},
        {"infinity rem 3 is invalid", {0x7C00, 0x4200}, 0xFE00, kInvalid},
        {"3 rem 0 is invalid", {0x4200, 0x0000}, 0xFE00, kInvalid},
        {"3 rem -0 is invalid", {0x4200, 0x8000}, 0xFE00, kInvalid},
        {"0 rem 0", {0x0000, 0x0000}, 0xFE00, kInvalid},
        {"infinity rem infinity", {0x7C00, 0x7C00}, 0xFE00, kInvalid},
        {"65504 rem the least subnormal: 39 binades, +0", {0x7BFF, 0x0001}, 0x0000},
        {"65504 rem 3 of them: 2047 * 2^29 = 2 mod 3, so -1", {0x7BFF, 0x0003}, 0x8001},
        {"-65504 rem three of them", {0xFBFF, 0x0003}, 0x0001},
        {"a subnormal rest is exact: no underflow", {0x0401, 0x0400}, 0x0001},
        {"the least rem the largest is itself", {0x0001, 0x7BFF}, 0x0001},
        {"65504 rem 1.5: 65504 = 43669 * 1.5 + 0.5", {0x7BFF, 0x3E00}, 0x3800},
        {"DAZ: 3 rem 0 is invalid", {0x4200, 0x0001}, 0xFE00, kInvalid, kDaz},
        {"flushed: the subnormal rest", {0x0401, 0x0400}, 0x0000, kTiny, kFtz},
    });

const Table kRemainderBinary32(
    "binary32 remainder", halfscope::kBinary32, binary<halfscope::remainder>,
    {
        {"the largest rem the least: 277 binades", {0x7F7FFFFF, 0x00000001}, 0x00000000},
        {"-1 rem 3 of the least subnormals", {0xBF800000, 0x00000003}, 0x00000001},
        {"2^24 - 1 rem 2: n = 2^23 - 0.5, tie to the even", {0x4B7FFFFF, 0x40000000}, 0xBF800000},
    });

TEST_CASE("rows: divide", "[number][rows][table]") {
  kDivide.check();
  kDivideSpecial.check();
  kDivideOther.check();
  kDivideFinite.check();
}

TEST_CASE("rows: square root", "[number][rows][table]") {
  kRoot.check();
  kRootBinary32.check();
}

TEST_CASE("rows: remainder", "[number][rows][table]") {
  kRemainder.check();
  kRemainderBinary32.check();
}

}  // namespace test_rows_divide
