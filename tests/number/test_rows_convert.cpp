// SPDX-License-Identifier: Apache-2.0
// Rows of the conversions between formats; test_convert_rows.cpp has more of binary64 to binary16.
// In binary32: 3F800000 is 1, an ulp of binary16 is 2000 in its last bits. Results by hand from
// IEEE 754-2019, OCP OFP8 1.0 and OCP MX 1.0, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "number/rows.hpp"

namespace test_rows_convert {

using namespace rows;
using halfscope::kBfloat16;
using halfscope::kBinary16;
using halfscope::kBinary32;
using halfscope::kBinary64;
using halfscope::kFloat4E2M1;
using halfscope::kFloat6E2M3;
using halfscope::kFloat6E3M2;
using halfscope::kFloat8E4M3;
using halfscope::kFloat8E5M2;
using halfscope::kTf32;

const Table kNarrow(
    "binary32 to binary16", kBinary16, convert_from<kBinary32>,
    {
        {"1 is exact", {0x3F800000}, 0x3C00},
        {"1 + half an ulp: tie to even", {0x3F801000}, 0x3C00, kInexact},
        {"just below it", {0x3F800FFF}, 0x3C00, kInexact},
        {"just above it", {0x3F801001}, 0x3C01, kInexact},
        {"1 + 1.5 ulp: tie to even, up", {0x3F803000}, 0x3C02, kInexact},
        {"1 + 1.5 ulp, to odd", {0x3F803000}, 0x3C01, kInexact, kOdd},
        {"a carry through all digits to 2", {0x3FFFF000}, 0x4000, kInexact},
        {"just below that carry", {0x3FFFEFFF}, 0x3FFF, kInexact},
        {"the least trace above 1, upward", {0x3F800001}, 0x3C01, kInexact, kUp},
        {"the least trace above 1, downward", {0x3F800001}, 0x3C00, kInexact, kDown},
        {"the least trace beyond -1, downward", {0xBF800001}, 0xBC01, kInexact, kDown},
        {"65504", {0x477FE000}, 0x7BFF},
        {"the last below 65520", {0x477FEFFF}, 0x7BFF, kInexact},
        {"65520", {0x477FF000}, 0x7C00, kOverflow},
        {"the last below 65520, upward", {0x477FEFFF}, 0x7C00, kOverflow, kUp},
        {"the last below 2^16, downward", {0x477FFFFF}, 0x7BFF, kInexact, kDown},
        {"2^16, downward", {0x47800000}, 0x7BFF, kOverflow, kDown},
        {"-2^16, downward", {0xC7800000}, 0xFC00, kOverflow, kDown},
        {"the largest binary32, away", {0x7F7FFFFF}, 0x7C00, kOverflow, kAway},
        {"infinity, toward zero, stays infinity", {0x7F800000}, 0x7C00, kNone, kToZero},
        {"infinity, saturated", {0x7F800000}, 0x7BFF, kNone, kSaturate},
        {"-65520, saturated: the flags stay", {0xC77FF000}, 0xFBFF, kOverflow, kSaturate},
        {"2^-14", {0x38800000}, 0x0400},
        {"the last below 2^-14: not tiny after", {0x387FFFFF}, 0x0400, kInexact},
        {"the last below 2^-14: tiny before", {0x387FFFFF}, 0x0400, kTiny, before(kEven)},
        {"2^-14 - 2^-26: not tiny after", {0x387FF000}, 0x0400, kInexact},
        {"2^-14 - 2^-26, negative, tiny before", {0xB87FF000}, 0x8400, kTiny, before(kEven)},
        {"the last below 2^-14 - 2^-26: tiny after", {0x387FEFFF}, 0x0400, kTiny},
        {"2^-14 - 2^-25: tie to the normal", {0x387FE000}, 0x0400, kTiny},
        {"the last below: subnormal", {0x387FDFFF}, 0x03FF, kTiny},
        {"the last below 2^-14, toward zero", {0x387FFFFF}, 0x03FF, kTiny, kToZero},
        {"the last below 2^-14, to odd", {0x387FFFFF}, 0x03FF, kTiny, kOdd},
        {"just above 2^-14 - 2^-25, upward: not tiny after", {0x387FE001}, 0x0400, kInexact, kUp},
        {"just above 2^-14 - 2^-25, upward: tiny before", {0x387FE001}, 0x0400, kTiny, before(kUp)},
        {"2^-24", {0x33800000}, 0x0001},
        {"2^-25: tie to zero", {0x33000000}, 0x0000, kTiny},
        {"2^-25 away", {0x33000000}, 0x0001, kTiny, kAway},
        {"just above 2^-25", {0x33000001}, 0x0001, kTiny},
        {"just below 2^-25, away", {0x32FFFFFF}, 0x0000, kTiny, kAway},
        {"a binary32 subnormal, upward", {0x00000001}, 0x0001, kTiny, kUp},
        {"minus a binary32 subnormal, upward: -0", {0x80000001}, 0x8000, kTiny, kUp},
        {"a binary32 subnormal, to odd", {0x00000001}, 0x0001, kTiny, kOdd},
        {"DAZ: those of the source, exactly", {0x007FFFFF}, 0x0000, kNone, kDaz},
        {"DAZ: 2^-24 is normal in binary32", {0x33800000}, 0x0001, kNone, kDaz},
        {"flushed: 2^-24", {0x33800000}, 0x0000, kTiny, kFtz},
        {"flushed: the last below 2^-14 is not tiny after", {0x387FFFFF}, 0x0400, kInexact, kFtz},
        {"flushed: 2^-14 - 2^-25 would be 2^-14, but tiny", {0xB87FE000}, 0x8000, kTiny, kFtz},
        {"flushed by the result: 2^-14 - 2^-25 is 2^-14", {0xB87FE000}, 0x8400, kTiny, kFtzResult},
        {"flushed by the result: below, a subnormal", {0x387FDFFF}, 0x0000, kTiny, kFtzResult},
        {"flushed by the result: 2^-24", {0x33800000}, 0x0000, kTiny, kFtzResult},
        {"flushed by the result: 2^-26 is zero", {0xB2800000}, 0x8000, kTiny, kFtzResult},
    });

const Table kWiden(
    "binary16 to binary32", kBinary32, convert_from<kBinary16>,
    {
        {"the least subnormal is normal there", {0x0001}, 0x33800000},
        {"the largest subnormal", {0x03FF}, 0x387FC000},
        {"65504", {0x7BFF}, 0x477FE000},
        {"-0 keeps its sign", {0x8000}, 0x80000000},
        {"-infinity", {0xFC00}, 0xFF800000},
        {"infinity saturated: the largest of the target", {0x7C00}, 0x7F7FFFFF, kNone, kSaturate},
        {"DAZ: those of the source", {0x8001}, 0x80000000, kNone, kDaz},
        {"a flushing target: nothing is tiny there", {0x0001}, 0x33800000, kNone, kFtz},
    });

const Table kToBfloat16(
    "binary32 to bfloat16", kBfloat16, convert_from<kBinary32>,
    {
        {"1 + 2^-8: tie to even", {0x3F808000}, 0x3F80, kInexact},
        {"1 + 3 * 2^-8: tie to even, up", {0x3F818000}, 0x3F82, kInexact},
        {"the largest binary32 overflows", {0x7F7FFFFF}, 0x7F80, kOverflow},
        {"the tie at the top", {0x7F7F8000}, 0x7F80, kOverflow},
        {"just below it", {0x7F7F7FFF}, 0x7F7F, kInexact},
        {"the least binary32 subnormal: to zero", {0x00000001}, 0x0000, kTiny},
        {"half the least: tie to zero", {0x00008000}, 0x0000, kTiny},
        {"just above half", {0x00008001}, 0x0001, kTiny},
        {"a subnormal that fits is exact", {0x00010000}, 0x0001},
        {"the largest binary32 subnormal: not tiny after", {0x007FFFFF}, 0x0080, kInexact},
        {"and tiny before", {0x007FFFFF}, 0x0080, kTiny, before(kEven)},
        {"2^-126 - 2^-134: tie to the normal, tiny", {0x007F8000}, 0x0080, kTiny},
        {"2^-126 - 2^-135: 8 digits tie to 2^-126, not tiny", {0x007FC000}, 0x0080, kInexact},
        {"just below that", {0x007FBFFF}, 0x0080, kTiny},
        {"subnormals are zeros", {0x807FFFFF}, 0x8000, kNone, kDaz},
    });

const Table kToTf32(
    "binary32 to tf32", kTf32, convert_from<kBinary32>,
    {
        {"1 + 2^-11: tie to even", {0x3F801000}, 0x1FC00, kInexact},
        {"1 + 3 * 2^-11: tie to even, up", {0x3F803000}, 0x1FC02, kInexact},
        {"1 + 2^-11, away", {0x3F801000}, 0x1FC01, kInexact, kAway},
        {"the least subnormal of TF32", {0x00002000}, 0x00001},
        {"half of it: tie to zero", {0x00001000}, 0x00000, kTiny},
        {"the largest binary32 subnormal: not tiny after", {0x007FFFFF}, 0x00400, kInexact},
        {"2^-126 - 2^-137: tie to the normal, tiny", {0x007FF000}, 0x00400, kTiny},
        {"the largest binary32", {0x7F7FFFFF}, 0x3FC00, kOverflow},
        {"the largest, toward zero", {0x7F7FFFFF}, 0x3FBFF, kInexact, kToZero},
    });

const Table kToE4M3(
    "binary16 to e4m3", kFloat8E4M3, convert_from<kBinary16>,
    {
        {"448", {0x5F00}, 0x7E},
        {"464: tie to the even 448", {0x5F40}, 0x7E, kInexact},
        {"just above 464: NaN", {0x5F41}, 0x7F, kOverflow},
        {"464 away: overflow", {0x5F40}, 0x7F, kOverflow, kAway},
        {"480 toward zero: 4 digits exceed 448", {0x5F80}, 0x7E, kOverflow, kToZero},
        {"just below 480 toward zero", {0x5F7F}, 0x7E, kInexact, kToZero},
        {"448 + a trace, upward", {0x5F01}, 0x7F, kOverflow, kUp},
        {"-480 upward: -448", {0xDF80}, 0xFE, kOverflow, kUp},
        {"464 to odd: 448 is even, 480 is not there", {0x5F40}, 0x7E, kOverflow, kOdd},
        {"480 saturated", {0x5F80}, 0x7E, kOverflow, kSaturate},
        {"infinity: NaN, no flag", {0xFC00}, 0xFF},
        {"infinity saturated", {0xFC00}, 0xFE, kNone, kSaturate},
        {"a NaN saturated stays NaN", {0x7E00}, 0x7F, kNone, kSaturate},
        {"2^-10: tie to zero", {0x1400}, 0x00, kTiny},
        {"3 * 2^-10: tie to even, up", {0x1A00}, 0x02, kTiny},
        {"15 * 2^-10: tie to the least normal, tiny", {0x2380}, 0x08, kTiny},
        {"31 * 2^-11: 4 digits tie to 2^-6, not tiny", {0x23C0}, 0x08, kInexact},
        {"just below 31 * 2^-11: tiny", {0x23BF}, 0x08, kTiny},
        {"and 31 * 2^-11 before rounding", {0x23C0}, 0x08, kTiny, before(kEven)},
    });

const Table kToE5M2("binary32 to e5m2", kFloat8E5M2, convert_from<kBinary32>,
                    {
                        {"57344", {0x47600000}, 0x7B},
                        {"61440: tie to infinity", {0x47700000}, 0x7C, kOverflow},
                        {"just below it", {0x476FFFFF}, 0x7B, kInexact},
                        {"61440 saturated", {0x47700000}, 0x7B, kOverflow, kSaturate},
                        {"1.125: tie to even", {0x3F900000}, 0x3C, kInexact},
                        {"1.375: tie to even, up", {0x3FB00000}, 0x3E, kInexact},
                        {"2^-17: tie to zero", {0x37000000}, 0x00, kTiny},
                        {"2^-14 - 2^-17: tie to the normal, tiny", {0x38600000}, 0x04, kTiny},
                        {"2^-14 - 2^-18: not tiny after", {0x38700000}, 0x04, kInexact},
                        {"a signaling NaN keeps its top bits", {0x7FA00000}, 0x7F, kInvalid},
                    });

const Table kToE3M2("binary32 to e3m2", kFloat6E3M2, convert_from<kBinary32>,
                    {
                        {"28, the largest", {0x41E00000}, 0x1F},
                        {"30: the tie at the top overflows to 28", {0x41F00000}, 0x1F, kOverflow},
                        {"just below 30", {0x41EFFFFF}, 0x1F, kInexact},
                        {"-infinity: -28, no flag", {0xFF800000}, 0x3F},
                        {"a NaN: 28, invalid", {0xFFC00000}, 0x1F, kInvalid},
                        {"0.0625, the least subnormal", {0x3D800000}, 0x01},
                        {"0.03125: tie to zero", {0x3D000000}, 0x00, kTiny},
                        {"0.21875: tie to the normal 0.25, tiny", {0x3E600000}, 0x04, kTiny},
                        {"0.234375: 3 digits tie to 0.25, not tiny", {0x3E700000}, 0x04, kInexact},
                        {"0.25, the least normal", {0x3E800000}, 0x04},
                    });

const Table kToE2M3(
    "binary32 to e2m3", kFloat6E2M3, convert_from<kBinary32>,
    {
        {"7.5, the largest", {0x40F00000}, 0x1F},
        {"7.75: the tie at the top overflows to 7.5", {0x40F80000}, 0x1F, kOverflow},
        {"just below 7.75", {0x40F7FFFF}, 0x1F, kInexact},
        {"-8, toward zero", {0xC1000000}, 0x3F, kOverflow, kToZero},
        {"0.125, the least subnormal", {0x3E000000}, 0x01},
        {"0.0625: tie to zero", {0x3D800000}, 0x00, kTiny},
        {"0.9375: tie to the normal 1, tiny", {0x3F700000}, 0x08, kTiny},
        {"0.96875: 4 digits tie to 1, not tiny", {0x3F780000}, 0x08, kInexact},
    });

const Table kToE2M1("binary16 to e2m1", kFloat4E2M1, convert_from<kBinary16>,
                    {
                        {"6, the largest", {0x4600}, 0x7},
                        {"7: the tie at the top overflows to 6", {0x4700}, 0x7, kOverflow},
                        {"7 toward zero: no overflow", {0x4700}, 0x7, kInexact, kToZero},
                        {"just below 7", {0x46FF}, 0x7, kInexact},
                        {"infinity: 6", {0x7C00}, 0x7},
                        {"a negative NaN: +6, invalid", {0xFE00}, 0x7, kInvalid},
                        {"5: tie to even, down to 4", {0x4500}, 0x6, kInexact},
                        {"3.5: tie to even, up to 4", {0x4300}, 0x6, kInexact},
                        {"2.5: tie to even 2", {0x4100}, 0x4, kInexact},
                        {"0.5, the only subnormal", {0x3800}, 0x1},
                        {"0.25: tie to zero", {0x3400}, 0x0, kTiny},
                        {"-0.25: tie to -0", {0xB400}, 0x8, kTiny},
                        {"0.75: tie to the normal 1, tiny", {0x3A00}, 0x2, kTiny},
                        {"0.875: 2 digits tie to 1, not tiny", {0x3B00}, 0x2, kInexact},
                        {"flushed: 0.5", {0x3800}, 0x0, kTiny, kFtz},
                    });

const Table kFromSmall("e4m3 to e5m2", kFloat8E5M2, convert_from<kFloat8E4M3>,
                       {
                           {"448 has 3 digits", {0x7E}, 0x5F},
                           {"416 = 1.625 * 2^8: tie to even, down", {0x7D}, 0x5E, kInexact},
                           {"NaN with its sign", {0xFF}, 0xFE},
                           {"the least subnormal, 2^-9, is normal there", {0x01}, 0x18},
                       });

const Table kFromDouble(
    "binary64 to binary16", kBinary16, convert_from<kBinary64>,
    {
        {"1 + 2^-11 + 2^-52: binary32 would hide it", {0x3FF0020000000001}, 0x3C01, kInexact},
        {"1 + 3 * 2^-11 - 2^-52: binary32 would hide it", {0x3FF005FFFFFFFFFF}, 0x3C01, kInexact},
        {"the least binary64, upward", {0x0000000000000001}, 0x0001, kTiny, kUp},
        {"2^-14 - 2^-26 - 2^-67: tiny after", {0x3F0FFDFFFFFFFFFF}, 0x0400, kTiny},
        {"2^-14 - 2^-67: not tiny after", {0x3F0FFFFFFFFFFFFF}, 0x0400, kInexact},
    });

TEST_CASE("rows: binary32 and binary64 to binary16 and back", "[number][rows][table]") {
  kNarrow.check();
  kFromDouble.check();
  kWiden.check();
}

TEST_CASE("rows: to bfloat16 and TF32", "[number][rows][table]") {
  kToBfloat16.check();
  kToTf32.check();
}

TEST_CASE("rows: to formats of 8 bits and fewer", "[number][rows][table]") {
  kToE4M3.check();
  kToE5M2.check();
  kToE3M2.check();
  kToE2M3.check();
  kToE2M1.check();
  kFromSmall.check();
}

}  // namespace test_rows_convert
