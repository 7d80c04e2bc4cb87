// SPDX-License-Identifier: Apache-2.0
// Rows of roundToIntegral and of the conversions to and from integers, at ties and at the ends of
// the types. Results by hand from IEEE 754-2019, 5.4.1, 5.8 and 5.9, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/integral.hpp"
#include "number/rows.hpp"

namespace test_rows_integral {

using namespace rows;
using halfscope::IntegerType;

const Table kIntegral(
    "binary16 round to integral", halfscope::kBinary16, round_to_integral<false>,
    {
        {"1.5: tie to the even 2", {0x3E00}, 0x4000},
        {"2.5: tie to the even 2", {0x4100}, 0x4000},
        {"-2.5", {0xC100}, 0xC000},
        {"2.5 away", {0x4100}, 0x4200, kNone, kAway},
        {"2.5 toward zero", {0x4100}, 0x4000, kNone, kToZero},
        {"2.5 upward", {0x4100}, 0x4200, kNone, kUp},
        {"-2.5 upward", {0xC100}, 0xC000, kNone, kUp},
        {"-2.5 downward", {0xC100}, 0xC200, kNone, kDown},
        {"2.5 to odd", {0x4100}, 0x4200, kNone, kOdd},
        {"3.5 to odd", {0x4300}, 0x4200, kNone, kOdd},
        {"0.5: tie to zero", {0x3800}, 0x0000},
        {"-0.5: tie to -0", {0xB800}, 0x8000},
        {"just above 0.5", {0x3801}, 0x3C00},
        {"0.5 away", {0x3800}, 0x3C00, kNone, kAway},
        {"just below 0.5, away", {0x37FF}, 0x0000, kNone, kAway},
        {"the least subnormal upward is 1", {0x0001}, 0x3C00, kNone, kUp},
        {"minus the least subnormal upward is -0", {0x8001}, 0x8000, kNone, kUp},
        {"minus the least subnormal downward is -1", {0x8001}, 0xBC00, kNone, kDown},
        {"the least subnormal to odd is 1", {0x0001}, 0x3C00, kNone, kOdd},
        {"DAZ: upward is 0",
         {0x0001},
         0x0000,
         kNone,
         {.rounding = Rounding::upward, .denormals_are_zero = true}},
        {"+0 is integral", {0x0000}, 0x0000},
        {"-0 keeps its sign, upward too", {0x8000}, 0x8000, kNone, kUp},
        {"1023.5: the last tie, to the even 1024", {0x63FF}, 0x6400},
        {"1022.5: to the even 1022", {0x63FD}, 0x63FC},
        {"1023.5 toward zero", {0x63FF}, 0x63FE, kNone, kToZero},
        {"1025 is integral", {0x6401}, 0x6401},
        {"65504 is integral", {0x7BFF}, 0x7BFF},
        {"-infinity", {0xFC00}, 0xFC00},
        {"infinity saturated", {0x7C00}, 0x7BFF, kNone, kSaturate},
        {"a quiet NaN passes", {0x7E12}, 0x7E12},
        {"a signaling NaN is quieted", {0xFC12}, 0xFE12, kInvalid},
    });

const Table kIntegralExact(
    "binary16 round to integral, exact", halfscope::kBinary16, round_to_integral<true>,
    {
        {"1.5 raises inexact", {0x3E00}, 0x4000, kInexact},
        {"2 does not", {0x4000}, 0x4000},
        {"-0.25 to -0 is inexact, not underflow", {0xB400}, 0x8000, kInexact},
        {"the least subnormal is inexact, not underflow", {0x0001}, 0x0000, kInexact},
        {"-0 is exact", {0x8000}, 0x8000},
        {"1023.5", {0x63FF}, 0x6400, kInexact},
        {"2^15 is exact", {0x7800}, 0x7800},
        {"infinity is exact", {0x7C00}, 0x7C00},
        {"DAZ: exact", {0x03FF}, 0x0000, kNone, kDaz},
    });

const Table kToI32(
    "binary16 to i32", halfscope::kBinary16, to_integer<IntegerType::i32, true>,
    {
        {"1 is exact", {0x3C00}, 1},
        {"-1 in two's complement", {0xBC00}, 0xFFFFFFFF},
        {"-0 is 0", {0x8000}, 0},
        {"2.5: tie to even", {0x4100}, 2, kInexact},
        {"-1.5: tie to even", {0xBE00}, 0xFFFFFFFE, kInexact},
        {"-0.5 downward", {0xB800}, 0xFFFFFFFF, kInexact, kDown},
        {"0.5 away", {0x3800}, 1, kInexact, kAway},
        {"65504", {0x7BFF}, 65504},
        {"-65504", {0xFBFF}, 0xFFFF0020},
        {"infinity: the integer indefinite", {0x7C00}, 0x80000000, kInvalid},
        {"infinity, canonical: the largest", {0x7C00}, 0x7FFFFFFF, kInvalid, kCanonical},
        {"-infinity, canonical: the least", {0xFC00}, 0x80000000, kInvalid, kCanonical},
        {"infinity, CUDA: the largest", {0x7C00}, 0x7FFFFFFF, kInvalid, kCuda},
        {"a quiet NaN", {0x7E00}, 0x80000000, kInvalid},
        {"a NaN, canonical: the largest", {0x7E00}, 0x7FFFFFFF, kInvalid, kCanonical},
        {"a negative NaN, canonical: the largest", {0xFE00}, 0x7FFFFFFF, kInvalid, kCanonical},
        {"a NaN, CUDA: 0", {0x7E00}, 0, kInvalid, kCuda},
        {"a signaling NaN, CUDA: 0", {0xFC01}, 0, kInvalid, kCuda},
    });

const Table kWideToI32(
    "binary64 to i32", halfscope::kBinary64, to_integer<IntegerType::i32, true>,
    {
        {"2^31 - 1", {0x41DFFFFFFFC00000}, 0x7FFFFFFF},
        {"2^31 - 0.5: tie to 2^31, too large", {0x41DFFFFFFFE00000}, 0x80000000, kInvalid},
        {"just below 2^31 - 0.5", {0x41DFFFFFFFDFFFFF}, 0x7FFFFFFF, kInexact},
        {"2^31 - 0.5 toward zero", {0x41DFFFFFFFE00000}, 0x7FFFFFFF, kInexact, kToZero},
        {"2^31 - 1 + a trace, upward", {0x41DFFFFFFFC00001}, 0x80000000, kInvalid, kUp},
        {"2^31, canonical", {0x41E0000000000000}, 0x7FFFFFFF, kInvalid, kCanonical},
        {"-2^31 is the least", {0xC1E0000000000000}, 0x80000000},
        {"-2^31 - 0.5: tie to the even -2^31", {0xC1E0000000100000}, 0x80000000, kInexact},
        {"-2^31 - 0.5 away: too small", {0xC1E0000000100000}, 0x80000000, kInvalid, kAway},
        {"-2^31 - 0.5 downward, CUDA",
         {0xC1E0000000100000},
         0x80000000,
         kInvalid,
         {.rounding = Rounding::downward, .nan = halfscope::NanPolicy::cuda}},
        {"-2^31 - just over 0.5", {0xC1E0000000100001}, 0x80000000, kInvalid},
        {"-2^31 - 1 + trace, toward zero", {0xC1E00000001FFFFF}, 0x80000000, kInexact, kToZero},
    });

const Table kToU32(
    "binary64 to u32", halfscope::kBinary64, to_integer<IntegerType::u32, true>,
    {
        {"2^32 - 1", {0x41EFFFFFFFE00000}, 0xFFFFFFFF},
        {"2^32 - 0.5: tie to 2^32, too large", {0x41EFFFFFFFF00000}, 0xFFFFFFFF, kInvalid},
        {"2^32 - 0.5 toward zero", {0x41EFFFFFFFF00000}, 0xFFFFFFFF, kInexact, kToZero},
        {"2^32, canonical: the largest", {0x41F0000000000000}, 0xFFFFFFFF, kInvalid, kCanonical},
        {"-0.5: tie to 0, in range", {0xBFE0000000000000}, 0, kInexact},
        {"-0.5 away: -1", {0xBFE0000000000000}, 0xFFFFFFFF, kInvalid, kAway},
        {"-0.75 toward zero: 0, in range", {0xBFE8000000000000}, 0, kInexact, kToZero},
        {"-0.75: -1", {0xBFE8000000000000}, 0xFFFFFFFF, kInvalid},
        {"-1, canonical: 0", {0xBFF0000000000000}, 0, kInvalid, kCanonical},
        {"-1, CUDA: 0", {0xBFF0000000000000}, 0, kInvalid, kCuda},
        {"-0 is 0 and exact", {0x8000000000000000}, 0},
        {"minus the least subnormal downward", {0x8000000000000001}, 0xFFFFFFFF, kInvalid, kDown},
        {"a NaN, canonical", {0xFFF8000000000000}, 0xFFFFFFFF, kInvalid, kCanonical},
        {"a NaN, CUDA", {0xFFF8000000000000}, 0, kInvalid, kCuda},
        {"-infinity, canonical", {0xFFF0000000000000}, 0, kInvalid, kCanonical},
    });

const Table kToI64(
    "binary64 to i64", halfscope::kBinary64, to_integer<IntegerType::i64, true>,
    {
        {"2^63 - 1024 is the largest binary64 in range", {0x43DFFFFFFFFFFFFF}, 0x7FFFFFFFFFFFFC00},
        {"2^63", {0x43E0000000000000}, 0x8000000000000000, kInvalid},
        {"2^63, canonical", {0x43E0000000000000}, 0x7FFFFFFFFFFFFFFF, kInvalid, kCanonical},
        {"-2^63 is the least", {0xC3E0000000000000}, 0x8000000000000000},
        {"just below -2^63", {0xC3E0000000000001}, 0x8000000000000000, kInvalid},
        {"2^52, where fractions end", {0x4330000000000000}, 0x10000000000000},
        {"2^51 + 0.5: tie to even", {0x4320000000000001}, 0x8000000000000, kInexact},
        {"2^51 + 1.5: tie to even", {0x4320000000000003}, 0x8000000000002, kInexact},
        {"a NaN, CUDA: 2^63", {0x7FF8000000000000}, 0x8000000000000000, kInvalid, kCuda},
        {"a NaN, canonical", {0x7FF8000000000000}, 0x7FFFFFFFFFFFFFFF, kInvalid, kCanonical},
    });

const Table kToU64(
    "binary64 to u64", halfscope::kBinary64, to_integer<IntegerType::u64, true>,
    {
        {"2^63", {0x43E0000000000000}, 0x8000000000000000},
        {"2^64 - 2048 is the largest in range", {0x43EFFFFFFFFFFFFF}, 0xFFFFFFFFFFFFF800},
        {"2^64", {0x43F0000000000000}, 0xFFFFFFFFFFFFFFFF, kInvalid},
        {"the largest binary64", {0x7FEFFFFFFFFFFFFF}, 0xFFFFFFFFFFFFFFFF, kInvalid},
        {"-1 is out of range", {0xBFF0000000000000}, 0xFFFFFFFFFFFFFFFF, kInvalid},
        {"-1, canonical: 0", {0xBFF0000000000000}, 0, kInvalid, kCanonical},
        {"a NaN, CUDA: 2^63", {0x7FF8000000000000}, 0x8000000000000000, kInvalid, kCuda},
        {"-infinity, CUDA: 0", {0xFFF0000000000000}, 0, kInvalid, kCuda},
    });

const Table kToU64Quietly("bfloat16 to u64, inexact not asked for", halfscope::kBfloat16,
                          to_integer<IntegerType::u64, false>,
                          {
                              {"1.5 raises nothing", {0x3FC0}, 2},
                              {"255 * 2^56, the largest in range", {0x5F7F}, 0xFF00000000000000},
                              {"2^64 is invalid", {0x5F80}, 0xFFFFFFFFFFFFFFFF, kInvalid},
                              {"DAZ: upward is 0",
                               {0x0001},
                               0,
                               kNone,
                               {.rounding = Rounding::upward, .denormals_are_zero = true}},
                          });

const Table kFromI32("i32 to binary16", halfscope::kBinary16, from_integer<IntegerType::i32>,
                     {
                         {"0 is +0", {0}, 0x0000},
                         {"0 downward is +0", {0}, 0x0000, kNone, kDown},
                         {"-1 is all ones", {0xFFFFFFFF}, 0xBC00},
                         {"2048", {2048}, 0x6800},
                         {"2049: tie to even", {2049}, 0x6800, kInexact},
                         {"2051: tie to even, up", {2051}, 0x6802, kInexact},
                         {"-2049 away", {0xFFFFF7FF}, 0xE801, kInexact, kAway},
                         {"-2049 upward", {0xFFFFF7FF}, 0xE800, kInexact, kUp},
                         {"-2049 downward", {0xFFFFF7FF}, 0xE801, kInexact, kDown},
                         {"2049 to odd", {2049}, 0x6801, kInexact, kOdd},
                         {"65519, below the tie", {65519}, 0x7BFF, kInexact},
                         {"65520, the tie", {65520}, 0x7C00, kOverflow},
                         {"65535 toward zero: no overflow", {65535}, 0x7BFF, kInexact, kToZero},
                         {"65536 toward zero: overflow", {65536}, 0x7BFF, kOverflow, kToZero},
                         {"65505 upward", {65505}, 0x7C00, kOverflow, kUp},
                         {"-2^31", {0x80000000}, 0xFC00, kOverflow},
                         {"-2^31 upward", {0x80000000}, 0xFBFF, kOverflow, kUp},
                         {"2^31 - 1 saturated", {0x7FFFFFFF}, 0x7BFF, kOverflow, kSaturate},
                     });

const Table kFromU64(
    "u64 to binary32", halfscope::kBinary32, from_integer<IntegerType::u64>,
    {
        {"2^24 + 1: tie to even", {0x1000001}, 0x4B800000, kInexact},
        {"2^24 + 3: tie to even, up", {0x1000003}, 0x4B800002, kInexact},
        {"2^64 - 1 carries to 2^64", {0xFFFFFFFFFFFFFFFF}, 0x5F800000, kInexact},
        {"2^64 - 1 toward zero", {0xFFFFFFFFFFFFFFFF}, 0x5F7FFFFF, kInexact, kToZero},
        {"2^63 is no negative number", {0x8000000000000000}, 0x5F000000},
        {"just over a tie at the 64th bit", {0x8000008000000001}, 0x5F000001, kInexact},
        {"the tie itself", {0x8000008000000000}, 0x5F000000, kInexact},
        {"2^53 + 2^29 + 1: in binary64 a tie", {0x20000020000001}, 0x5A000001, kInexact},
    });

const Table kFromI64(
    "i64 to binary64", halfscope::kBinary64, from_integer<IntegerType::i64>,
    {
        {"2^53 + 1: tie to even", {0x20000000000001}, 0x4340000000000000, kInexact},
        {"-2^63", {0x8000000000000000}, 0xC3E0000000000000},
        {"2^63 - 1 carries", {0x7FFFFFFFFFFFFFFF}, 0x43E0000000000000, kInexact},
        {"-1 is all ones", {0xFFFFFFFFFFFFFFFF}, 0xBFF0000000000000},
    });

const Table kFromU32("u32 to e4m3", halfscope::kFloat8E4M3, from_integer<IntegerType::u32>,
                     {
                         {"448", {448}, 0x7E},
                         {"464: tie to the even 448", {464}, 0x7E, kInexact},
                         {"465: above the tie, NaN", {465}, 0x7F, kOverflow},
                         {"17: tie to even 16", {17}, 0x58, kInexact},
                         {"19: tie to even 20", {19}, 0x5A, kInexact},
                         {"2^32 - 1 is positive", {0xFFFFFFFF}, 0x7F, kOverflow},
                         {"2^32 - 1 saturated", {0xFFFFFFFF}, 0x7E, kOverflow, kSaturate},
                     });

TEST_CASE("rows: round to integral", "[number][rows][table]") {
  kIntegral.check();
  kIntegralExact.check();
}

TEST_CASE("rows: to integers", "[number][rows][table]") {
  kToI32.check();
  kWideToI32.check();
  kToU32.check();
  kToI64.check();
  kToU64.check();
  kToU64Quietly.check();
}

TEST_CASE("rows: from integers", "[number][rows][table]") {
  kFromI32.check();
  kFromU64.check();
  kFromI64.check();
  kFromU32.check();
}

}  // namespace test_rows_integral
