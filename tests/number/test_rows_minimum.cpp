// SPDX-License-Identifier: Apache-2.0
// Rows of minimum and maximum: IEEE 754-2019, 9.6, and of the 2008 standard, 5.3.1. In binary16:
// 7C01 to 7DFF are signaling NaNs, 7E00 to 7FFF quiet ones. By hand, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/compare.hpp"
#include "number/rows.hpp"

namespace test_rows_minimum {

using namespace rows;

const Table kMinimum(
    "binary16 minimum", halfscope::kBinary16, binary<halfscope::minimum>,
    {
        {"1, 2", {0x3C00, 0x4000}, 0x3C00},
        {"2, 1", {0x4000, 0x3C00}, 0x3C00},
        {"-1, -2", {0xBC00, 0xC000}, 0xC000},
        {"-1, 1", {0xBC00, 0x3C00}, 0xBC00},
        {"+0, -0 is -0", {0x0000, 0x8000}, 0x8000},
        {"-0, +0 is -0", {0x8000, 0x0000}, 0x8000},
        {"-infinity, 1", {0xFC00, 0x3C00}, 0xFC00},
        {"infinity, 65504", {0x7C00, 0x7BFF}, 0x7BFF},
        {"1, a quiet NaN: the NaN", {0x3C00, 0x7E12}, 0x7E12},
        {"a quiet NaN, -infinity: the NaN", {0x7E12, 0xFC00}, 0x7E12},
        {"1, a signaling NaN: quieted", {0x3C00, 0x7C12}, 0x7E12, kInvalid},
        {"two NaNs: the first", {0xFE01, 0x7E02}, 0xFE01},
        {"two NaNs, the second signaling: the first, invalid", {0xFE01, 0x7C02}, 0xFE01, kInvalid},
        {"a NaN, canonical", {0x3C00, 0xFE12}, 0x7E00, kNone, kCanonical},
        {"a NaN, CUDA", {0xFE12, 0x3C00}, 0x7FFF, kNone, kCuda},
        {"DAZ: the result too", {0x0001, 0x3C00}, 0x0000, kNone, kDaz},
        {"DAZ: -0 for a negative one", {0x8001, 0x0000}, 0x8000, kNone, kDaz},
        {"saturated: no infinity comes out", {0x7C00, 0x7C00}, 0x7BFF, kNone, kSaturate},
    });

const Table kMaximum("binary16 maximum", halfscope::kBinary16, binary<halfscope::maximum>,
                     {
                         {"1, 2", {0x3C00, 0x4000}, 0x4000},
                         {"-1, -2", {0xBC00, 0xC000}, 0xBC00},
                         {"+0, -0 is +0", {0x0000, 0x8000}, 0x0000},
                         {"-0, +0 is +0", {0x8000, 0x0000}, 0x0000},
                         {"-0, -0 is -0", {0x8000, 0x8000}, 0x8000},
                         {"-infinity, -65504", {0xFC00, 0xFBFF}, 0xFBFF},
                         {"infinity, a quiet NaN: the NaN", {0x7C00, 0x7E12}, 0x7E12},
                         {"a signaling NaN, 1", {0xFC12, 0x3C00}, 0xFE12, kInvalid},
                         {"-the least subnormal, -0", {0x8001, 0x8000}, 0x8000},
                     });

const Table kMinimumNumber(
    "binary16 minimumNumber", halfscope::kBinary16, binary<halfscope::minimum_number>,
    {
        {"1, 2", {0x3C00, 0x4000}, 0x3C00},
        {"+0, -0 is -0", {0x0000, 0x8000}, 0x8000},
        {"1, a quiet NaN: the number", {0x3C00, 0x7E12}, 0x3C00},
        {"a quiet NaN, infinity: the number", {0x7E12, 0x7C00}, 0x7C00},
        {"1, a signaling NaN: the number, invalid", {0x3C00, 0x7C12}, 0x3C00, kInvalid},
        {"a signaling NaN, 1: the number, invalid", {0x7C12, 0x3C00}, 0x3C00, kInvalid},
        {"two quiet NaNs", {0x7E01, 0xFE02}, 0x7E01},
        {"two NaNs, the first signaling", {0x7C01, 0xFE02}, 0x7E01, kInvalid},
        {"two NaNs, CUDA", {0x7E01, 0xFE02}, 0x7FFF, kNone, kCuda},
        {"DAZ: beside a NaN too", {0x7E00, 0x8001}, 0x8000, kNone, kDaz},
    });

const Table kMaximumNumber(
    "binary16 maximumNumber", halfscope::kBinary16, binary<halfscope::maximum_number>,
    {
        {"1, 2", {0x3C00, 0x4000}, 0x4000},
        {"-0, +0 is +0", {0x8000, 0x0000}, 0x0000},
        {"-1, a quiet NaN: the number", {0xBC00, 0x7E12}, 0xBC00},
        {"a signaling NaN, -infinity: the number, invalid", {0x7C12, 0xFC00}, 0xFC00, kInvalid},
        {"two signaling NaNs, canonical", {0x7C01, 0xFC02}, 0x7E00, kInvalid, kCanonical},
    });

const Table kMinNum(
    "binary16 minNum of 2008", halfscope::kBinary16, binary<halfscope::min_num>,
    {
        {"1, a quiet NaN: the number", {0x3C00, 0x7E12}, 0x3C00},
        {"a quiet NaN, 1: the number", {0xFE12, 0x3C00}, 0x3C00},
        {"1, a signaling NaN: NaN, unlike minimumNumber", {0x3C00, 0x7C12}, 0x7E12, kInvalid},
        {"a signaling NaN, 1: NaN", {0xFC12, 0x3C00}, 0xFE12, kInvalid},
        {"a signaling NaN, 1, canonical", {0xFC12, 0x3C00}, 0x7E00, kInvalid, kCanonical},
        {"a signaling NaN, 1, CUDA", {0xFC12, 0x3C00}, 0x7FFF, kInvalid, kCuda},
        {"two quiet NaNs", {0x7E02, 0x7E01}, 0x7E02},
        {"+0, -0: here -0", {0x0000, 0x8000}, 0x8000},
        {"-2, -1", {0xC000, 0xBC00}, 0xC000},
    });

const Table kMaxNum(
    "binary16 maxNum of 2008", halfscope::kBinary16, binary<halfscope::max_num>,
    {
        {"-infinity, a quiet NaN: the number", {0xFC00, 0x7E12}, 0xFC00},
        {"1, a signaling NaN: NaN", {0x3C00, 0x7C12}, 0x7E12, kInvalid},
        {"-0, +0: here +0", {0x8000, 0x0000}, 0x0000},
        {"-2, -1", {0xC000, 0xBC00}, 0xBC00},
        {"a quiet and a signaling NaN: the first, invalid", {0x7E01, 0x7C02}, 0x7E01, kInvalid},
    });

const Table kMinimumSmall("e4m3 maximumNumber", halfscope::kFloat8E4M3,
                          binary<halfscope::maximum_number>,
                          {
                              {"448, NaN: the number", {0x7E, 0x7F}, 0x7E},
                              {"NaN, -NaN: the first", {0xFF, 0x7F}, 0xFF},
                              {"NaN, NaN, canonical", {0xFF, 0xFF}, 0x7F, kNone, kCanonical},
                          });

TEST_CASE("rows: minimum and maximum of 2019", "[number][rows][table]") {
  kMinimum.check();
  kMaximum.check();
  kMinimumNumber.check();
  kMaximumNumber.check();
  kMinimumSmall.check();
}

TEST_CASE("rows: minNum and maxNum of 2008", "[number][rows][table]") {
  kMinNum.check();
  kMaxNum.check();
}

}  // namespace test_rows_minimum
