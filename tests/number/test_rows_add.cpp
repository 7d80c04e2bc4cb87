// SPDX-License-Identifier: Apache-2.0
// Rows of add and subtract. In binary16: 3C00 is 1, 0400 the smallest normal, 7BFF the largest
// number, 65504; an ulp of 1 is 2^-10 (1400). Results by hand from IEEE 754-2019, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/rows.hpp"

namespace test_rows_add {

using namespace rows;

const Table kAdd(
    "binary16 add", halfscope::kBinary16, binary<halfscope::add>,
    {
        {"1 + 1 is exact", {0x3C00, 0x3C00}, 0x4000},
        {"1 + 2^-10, one ulp, is exact", {0x3C00, 0x1400}, 0x3C01},
        {"1 + 2^-11: tie to the even 1", {0x3C00, 0x1000}, 0x3C00, kInexact},
        {"1 + ulp + 2^-11: tie to the even, up", {0x3C01, 0x1000}, 0x3C02, kInexact},
        {"1 + just below 2^-11: down", {0x3C00, 0x0FFF}, 0x3C00, kInexact},
        {"1 + just above 2^-11: up", {0x3C00, 0x1001}, 0x3C01, kInexact},
        {"the tie, away", {0x3C00, 0x1000}, 0x3C01, kInexact, kAway},
        {"the tie below, negative, away", {0xBC00, 0x9000}, 0xBC01, kInexact, kAway},
        {"the tie, toward zero", {0x3C01, 0x1000}, 0x3C01, kInexact, kToZero},
        {"the tie, upward", {0x3C00, 0x1000}, 0x3C01, kInexact, kUp},
        {"the negative tie, upward", {0xBC00, 0x9000}, 0xBC00, kInexact, kUp},
        {"the tie, downward", {0x3C01, 0x1000}, 0x3C01, kInexact, kDown},
        {"the negative tie, downward", {0xBC00, 0x9000}, 0xBC01, kInexact, kDown},
        {"the tie, to odd, from even", {0x3C00, 0x1000}, 0x3C01, kInexact, kOdd},
        {"the tie, to odd, stays odd", {0x3C01, 0x1000}, 0x3C01, kInexact, kOdd},
        {"carry into the next binade: 2 - ulp + half of it", {0x3FFF, 0x1000}, 0x4000, kInexact},
        {"exact carry: 1.9990234375 + 2^-10", {0x3FFF, 0x1400}, 0x4000},
        {"below 1 the ulp halves: 1 - 2^-11 is exact", {0x3C00, 0x9000}, 0x3BFF},
        {"1 - 2^-12: tie to the even 1", {0x3C00, 0x8C00}, 0x3C00, kInexact},
        {"1 - just above 2^-12: down", {0x3C00, 0x8C01}, 0x3BFF, kInexact},
        {"1 - just below 2^-12: up to 1", {0x3C00, 0x8BFF}, 0x3C00, kInexact},
        {"1 - 2^-24, toward zero: borrow", {0x3C00, 0x8001}, 0x3BFF, kInexact, kToZero},
        {"1 - the least subnormal, upward", {0x3C00, 0x8001}, 0x3C00, kInexact, kUp},
        {"1 - 2^-24, to odd: 1 - 2^-11 is odd", {0x3C00, 0x8001}, 0x3BFF, kInexact, kOdd},
        {"1 + 2^-24, to odd: keeps the trace", {0x3C00, 0x0001}, 0x3C01, kInexact, kOdd},
        {"65504 + 2^-24: nothing to nearest", {0x7BFF, 0x0001}, 0x7BFF, kInexact},
        {"65504 + 2^-24, upward: infinity", {0x7BFF, 0x0001}, 0x7C00, kOverflow, kUp},
        {"-65504 - 2^-24, downward: -infinity", {0xFBFF, 0x8001}, 0xFC00, kOverflow, kDown},
        {"-65504 - 2^-24, upward: stays", {0xFBFF, 0x8001}, 0xFBFF, kInexact, kUp},
        {"65504 + 16, the tie at the top: infinity", {0x7BFF, 0x4C00}, 0x7C00, kOverflow},
        {"65504 + just below 16: stays", {0x7BFF, 0x4BFF}, 0x7BFF, kInexact},
        {"65504 + 16, away: infinity", {0x7BFF, 0x4C00}, 0x7C00, kOverflow, kAway},
        {"65504 + 16, toward zero: no overflow", {0x7BFF, 0x4C00}, 0x7BFF, kInexact, kToZero},
        {"65504 + 16, to odd: 65504 is odd and stays", {0x7BFF, 0x4C00}, 0x7BFF, kInexact, kOdd},
        {"65504 + 32 is 2^16: overflow", {0x7BFF, 0x5000}, 0x7C00, kOverflow},
        {"2^16, toward zero: overflow to the largest",
         {0x7BFF, 0x5000},
         0x7BFF,
         kOverflow,
         kToZero},
        {"2^16, downward: overflow to the largest", {0x7BFF, 0x5000}, 0x7BFF, kOverflow, kDown},
        {"-2^16, upward: overflow to -largest", {0xFBFF, 0xD000}, 0xFBFF, kOverflow, kUp},
        {"-2^16, toward zero", {0xFBFF, 0xD000}, 0xFBFF, kOverflow, kToZero},
        {"2^16, to odd: the largest, which is odd", {0x7BFF, 0x5000}, 0x7BFF, kOverflow, kOdd},
        {"65504 + 65504", {0x7BFF, 0x7BFF}, 0x7C00, kOverflow},
        {"subnormal + subnormal is exact", {0x0001, 0x0001}, 0x0002},
        {"the largest subnormal + the least is the least normal", {0x03FF, 0x0001}, 0x0400},
        {"the least normal - the least subnormal", {0x0400, 0x8001}, 0x03FF},
        {"a tiny exact sum before rounding", {0x0400, 0x8001}, 0x03FF, kNone, before(kEven)},
        {"subnormals carry two binades up", {0x03FF, 0x03FF}, 0x07FE},
        {"massive cancellation is exact", {0x3C01, 0xBC00}, 0x1400},
        {"neighbours across a binade cancel to half an ulp", {0x3C00, 0xBBFF}, 0x1000},
        {"2048 + 1: tie to even", {0x6800, 0x3C00}, 0x6800, kInexact},
        {"2050 + 1: tie to even, up", {0x6801, 0x3C00}, 0x6802, kInexact},
        {"far apart: only the sign of the rest is left", {0x7800, 0x8001}, 0x7800, kInexact},
        {"2^15 - a trace, downward: a smaller ulp", {0x7800, 0x8001}, 0x77FF, kInexact, kDown},
    });

const Table kAddZeros(
    "binary16 add, zeros", halfscope::kBinary16, binary<halfscope::add>,
    {
        {"+0 + +0", {0x0000, 0x0000}, 0x0000},
        {"-0 + -0 keeps the sign", {0x8000, 0x8000}, 0x8000},
        {"-0 + -0 upward keeps it too", {0x8000, 0x8000}, 0x8000, kNone, kUp},
        {"+0 + -0 is +0", {0x0000, 0x8000}, 0x0000},
        {"-0 + +0 is +0", {0x8000, 0x0000}, 0x0000},
        {"+0 + -0 downward is -0", {0x0000, 0x8000}, 0x8000, kNone, kDown},
        {"+0 + +0 downward is +0", {0x0000, 0x0000}, 0x0000, kNone, kDown},
        {"x + -x to even is +0", {0x3C00, 0xBC00}, 0x0000},
        {"x + -x away is +0", {0x3C00, 0xBC00}, 0x0000, kNone, kAway},
        {"x + -x toward zero is +0", {0x3C00, 0xBC00}, 0x0000, kNone, kToZero},
        {"x + -x upward is +0", {0x3C00, 0xBC00}, 0x0000, kNone, kUp},
        {"x + -x downward is -0", {0x3C00, 0xBC00}, 0x8000, kNone, kDown},
        {"x + -x to odd is +0", {0x3C00, 0xBC00}, 0x0000, kNone, kOdd},
        {"-x + x downward is -0", {0xBC00, 0x3C00}, 0x8000, kNone, kDown},
        {"a subnormal and its negative", {0x0001, 0x8001}, 0x0000},
        {"-0 + x is x", {0x8000, 0x0001}, 0x0001},
        {"x + -0 is x", {0xBC00, 0x8000}, 0xBC00},
        {"DAZ: the sign rule sees +0 + -0", {0x0001, 0x8001}, 0x0000, kNone, kDaz},
        {"DAZ: 1 + a subnormal is exact", {0x3C00, 0x03FF}, 0x3C00, kNone, kDaz},
        {"flushed: a subnormal difference becomes +0", {0x0401, 0x8400}, 0x0000, kTiny, kFtz},
        {"flushed: a negative one -0", {0x0400, 0x8401}, 0x8000, kTiny, kFtz},
        {"flushed: the least normal is no subnormal", {0x03FF, 0x0001}, 0x0400, kNone, kFtz},
    });

const Table kAddInfinities(
    "binary16 add, infinities", halfscope::kBinary16, binary<halfscope::add>,
    {
        {"infinity + 1", {0x7C00, 0x3C00}, 0x7C00},
        {"1 + -infinity", {0x3C00, 0xFC00}, 0xFC00},
        {"infinity + infinity", {0x7C00, 0x7C00}, 0x7C00},
        {"-infinity + -infinity", {0xFC00, 0xFC00}, 0xFC00},
        {"infinity - infinity is invalid", {0x7C00, 0xFC00}, 0xFE00, kInvalid},
        {"-infinity + infinity is invalid", {0xFC00, 0x7C00}, 0xFE00, kInvalid},
        {"infinity + -65504 toward zero", {0x7C00, 0xFBFF}, 0x7C00, kNone, kToZero},
        {"saturated: infinity + 1", {0x7C00, 0x3C00}, 0x7BFF, kNone, kSaturate},
        {"saturated: overflow keeps its flags", {0xFBFF, 0xFBFF}, 0xFBFF, kOverflow, kSaturate},
        {"saturated: infinity - infinity", {0x7C00, 0xFC00}, 0xFE00, kInvalid, kSaturate},
    });

const Table kSubtract(
    "binary16 subtract", halfscope::kBinary16, binary<halfscope::subtract>,
    {
        {"x - x is +0", {0x3C00, 0x3C00}, 0x0000},
        {"x - x downward is -0", {0x3C00, 0x3C00}, 0x8000, kNone, kDown},
        {"+0 - +0 is +0", {0x0000, 0x0000}, 0x0000},
        {"+0 - +0 downward is -0", {0x0000, 0x0000}, 0x8000, kNone, kDown},
        {"-0 - +0 is -0", {0x8000, 0x0000}, 0x8000},
        {"+0 - -0 is +0, downward too", {0x0000, 0x8000}, 0x0000, kNone, kDown},
        {"-0 - -0 is +0", {0x8000, 0x8000}, 0x0000},
        {"0 - x changes the sign", {0x0000, 0x0001}, 0x8001},
        {"1 - 2^-12: tie to the even 1, from above", {0x3C00, 0x0C00}, 0x3C00, kInexact},
        {"1 - 3 * 2^-12: tie to the even, down", {0x3C00, 0x1200}, 0x3BFE, kInexact},
        {"2 - the least subnormal, toward zero", {0x4000, 0x0001}, 0x3FFF, kInexact, kToZero},
        {"-65504 - 16, the tie at the bottom", {0xFBFF, 0x4C00}, 0xFC00, kOverflow},
        {"infinity - infinity is invalid", {0x7C00, 0x7C00}, 0xFE00, kInvalid},
        {"infinity - -infinity", {0x7C00, 0xFC00}, 0x7C00},
        {"1 - infinity", {0x3C00, 0x7C00}, 0xFC00},
        {"the sign of a NaN operand is not changed", {0x3C00, 0x7E01}, 0x7E01},
        {"nor that of a negative one", {0x3C00, 0xFE01}, 0xFE01},
    });

const Table kAddBfloat16(
    "bfloat16 add", halfscope::kBfloat16, binary<halfscope::add>,
    {
        {"1 + 2^-8: tie to the even 1", {0x3F80, 0x3B80}, 0x3F80, kInexact},
        {"1 + ulp + 2^-8: tie to the even, up", {0x3F81, 0x3B80}, 0x3F82, kInexact},
        {"the largest + half its ulp: infinity", {0x7F7F, 0x7B00}, 0x7F80, kOverflow},
        {"the largest + just below half its ulp", {0x7F7F, 0x7AFF}, 0x7F7F, kInexact},
        {"the least normal - the least subnormal", {0x0080, 0x8001}, 0x007F},
        {"2^127 - 2^-133, downward", {0x7F00, 0x8001}, 0x7EFF, kInexact, kDown},
    });

const Table kAddBinary32(
    "binary32 add", halfscope::kBinary32, binary<halfscope::add>,
    {
        {"1 + 2^-24: tie to the even 1", {0x3F800000, 0x33800000}, 0x3F800000, kInexact},
        {"1 + ulp + 2^-24: tie to the even, up", {0x3F800001, 0x33800000}, 0x3F800002, kInexact},
        {"1 + just above 2^-24", {0x3F800000, 0x33800001}, 0x3F800001, kInexact},
        {"2^24 + 1: tie to even", {0x4B800000, 0x3F800000}, 0x4B800000, kInexact},
        {"the largest + half its ulp", {0x7F7FFFFF, 0x73000000}, 0x7F800000, kOverflow},
        {"2^127 + 2^-149, upward", {0x7F000000, 0x00000001}, 0x7F000001, kInexact, kUp},
        {"the least normal - the least subnormal", {0x00800000, 0x80000001}, 0x007FFFFF},
    });

const Table kAddE4M3(
    "e4m3 add", halfscope::kFloat8E4M3, binary<halfscope::add>,
    {
        {"448 + 16 is 464: tie to the even 448", {0x7E, 0x58}, 0x7E, kInexact},
        {"448 + 18: above the tie, NaN stands for infinity", {0x7E, 0x59}, 0x7F, kOverflow},
        {"448 + 16, away: overflow", {0x7E, 0x58}, 0x7F, kOverflow, kAway},
        {"448 + 0.5, upward: overflow", {0x7E, 0x30}, 0x7F, kOverflow, kUp},
        {"448 + 448, toward zero: the largest", {0x7E, 0x7E}, 0x7E, kOverflow, kToZero},
        {"-448 - 448, saturated", {0xFE, 0xFE}, 0xFE, kOverflow, kSaturate},
        {"416 + 32 is 448: exact", {0x7D, 0x60}, 0x7E},
    });

TEST_CASE("rows: add", "[number][rows][table]") {
  kAdd.check();
  kAddZeros.check();
  kAddInfinities.check();
}

TEST_CASE("rows: subtract", "[number][rows][table]") { kSubtract.check(); }

TEST_CASE("rows: add in other formats", "[number][rows][table]") {
  kAddBfloat16.check();
  kAddBinary32.check();
  kAddE4M3.check();
}

}  // namespace test_rows_add
