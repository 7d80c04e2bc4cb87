// SPDX-License-Identifier: Apache-2.0
// Rows of nextUp and nextDown (5.3.1), scaleB and logB (5.3.3) and class (5.7.2).
// Results by hand from IEEE 754-2019, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/neighbour.hpp"
#include "number/rows.hpp"

namespace test_rows_neighbour {

using namespace rows;
using halfscope::Class;

/// The second operand is the exponent, in two's complement.
Rounded scaled(Format f, const Operands& x, const Modes& modes) {
  return halfscope::scale_b(f, x[0], static_cast<std::int64_t>(x[1]), modes);
}
constexpr std::uint64_t minus(std::uint64_t n) { return ~n + 1; }

constexpr std::uint64_t bits(Class c) { return static_cast<std::uint64_t>(c); }
Rounded class_of(Format f, const Operands& x, const Modes&) {
  return {bits(halfscope::classify(f, x[0])), {}};
}

const Table kNextUp("binary16 nextUp", halfscope::kBinary16, unary<halfscope::next_up>,
                    {
                        {"1 goes up by one ulp", {0x3C00}, 0x3C01},
                        {"-1 goes toward zero", {0xBC00}, 0xBBFF},
                        {"2 - ulp crosses the binade", {0x3FFF}, 0x4000},
                        {"the largest subnormal becomes normal", {0x03FF}, 0x0400},
                        {"minus the least normal becomes subnormal", {0x8400}, 0x83FF},
                        {"+0: the least subnormal", {0x0000}, 0x0001},
                        {"-0: the least positive too", {0x8000}, 0x0001},
                        {"minus the least subnormal is -0", {0x8001}, 0x8000},
                        {"65504 is infinity, no flag", {0x7BFF}, 0x7C00},
                        {"65504 saturated", {0x7BFF}, 0x7BFF, kNone, kSaturate},
                        {"infinity stays", {0x7C00}, 0x7C00},
                        {"-infinity is -65504", {0xFC00}, 0xFBFF},
                        {"a quiet NaN", {0xFE12}, 0xFE12},
                        {"a signaling NaN", {0x7C12}, 0x7E12, kInvalid},
                        {"a signaling NaN, CUDA", {0x7C12}, 0x7FFF, kInvalid, kCuda},
                    });

const Table kNextDown("binary16 nextDown", halfscope::kBinary16, unary<halfscope::next_down>,
                      {
                          {"1 crosses the binade", {0x3C00}, 0x3BFF},
                          {"-1 goes away from zero", {0xBC00}, 0xBC01},
                          {"+0: minus the least subnormal", {0x0000}, 0x8001},
                          {"-0: the same", {0x8000}, 0x8001},
                          {"the least subnormal is +0", {0x0001}, 0x0000},
                          {"the least normal becomes subnormal", {0x0400}, 0x03FF},
                          {"infinity is 65504", {0x7C00}, 0x7BFF},
                          {"-65504 is -infinity", {0xFBFF}, 0xFC00},
                          {"-infinity stays", {0xFC00}, 0xFC00},
                          {"a signaling NaN", {0xFDFF}, 0xFFFF, kInvalid},
                      });

const Table kNextUpE4M3("e4m3 nextUp", halfscope::kFloat8E4M3, unary<halfscope::next_up>,
                        {
                            {"240 goes on to 256", {0x77}, 0x78},
                            {"448: NaN stands for infinity", {0x7E}, 0x7F},
                            {"-448", {0xFE}, 0xFD},
                            {"NaN", {0xFF}, 0xFF},
                        });

const Table kNextDownE2M1("e2m1 nextDown", halfscope::kFloat4E2M1, unary<halfscope::next_down>,
                          {
                              {"-6 is the last", {0xF}, 0xF},
                              {"6 is a number like others", {0x7}, 0x6},
                              {"+0: minus the only subnormal", {0x0}, 0x9},
                          });

const Table kScale("binary16 scaleB", halfscope::kBinary16, scaled,
                   {
                       {"1 by 0", {0x3C00, 0}, 0x3C00},
                       {"1 by 15", {0x3C00, 15}, 0x7800},
                       {"1 by 16 overflows", {0x3C00, 16}, 0x7C00, kOverflow},
                       {"1 by 16 toward zero", {0x3C00, 16}, 0x7BFF, kOverflow, kToZero},
                       {"-1 by 16 saturated", {0xBC00, 16}, 0xFBFF, kOverflow, kSaturate},
                       {"1 by -14", {0x3C00, minus(14)}, 0x0400},
                       {"1 by -24: the least subnormal, exact", {0x3C00, minus(24)}, 0x0001},
                       {"1 by -25: tie to zero", {0x3C00, minus(25)}, 0x0000, kTiny},
                       {"1 by -25 away", {0x3C00, minus(25)}, 0x0001, kTiny, kAway},
                       {"1 + ulp by -25: above the tie", {0x3C01, minus(25)}, 0x0001, kTiny},
                       {"1.5 by -24: tie to even, up", {0x3E00, minus(24)}, 0x0002, kTiny},
                       {"2 - ulp by -15: tie to 2^-14, tiny", {0x3FFF, minus(15)}, 0x0400, kTiny},
                       {"2 - ulp by -15 toward zero", {0x3FFF, minus(15)}, 0x03FF, kTiny, kToZero},
                       {"2 - 2 ulp by -15 is exact", {0x3FFE, minus(15)}, 0x03FF},
                       {"the least subnormal by 24", {0x0001, 24}, 0x3C00},
                       {"the least subnormal by 39: 2^15", {0x0001, 39}, 0x7800},
                       {"the least subnormal by 40", {0x0001, 40}, 0x7C00, kOverflow},
                       {"1 by 2^40", {0x3C00, 0x10000000000}, 0x7C00, kOverflow},
                       {"1 by -2^63", {0x3C00, 0x8000000000000000}, 0x0000, kTiny},
                       {"-1 by -2^63 downward", {0xBC00, 0x8000000000000000}, 0x8001, kTiny, kDown},
                       {"1 by 2^63 - 1", {0x3C00, 0x7FFFFFFFFFFFFFFF}, 0x7C00, kOverflow},
                       {"0 by 2^40 is 0", {0x0000, 0x10000000000}, 0x0000},
                       {"-0 by 1 is -0", {0x8000, 1}, 0x8000},
                       {"-infinity by -100", {0xFC00, minus(100)}, 0xFC00},
                       {"a signaling NaN by 0", {0x7C01, 0}, 0x7E01, kInvalid},
                       {"flushed: 1 by -15", {0x3C00, minus(15)}, 0x0000, kTiny, kFtz},
                       {"DAZ: the least by 24", {0x8001, 24}, 0x8000, kNone, kDaz},
                   });

const Table kLog("binary16 logB", halfscope::kBinary16, unary<halfscope::log_b>,
                 {
                     {"1 has 0", {0x3C00}, 0x0000},
                     {"2 - ulp has 0", {0x3FFF}, 0x0000},
                     {"-8 has 3", {0xC800}, 0x4200},
                     {"65504 has 15", {0x7BFF}, 0x4B80},
                     {"1 - 2^-11 has -1", {0x3BFF}, 0xBC00},
                     {"the least normal has -14", {0x0400}, 0xCB00},
                     {"the largest subnormal has -15", {0x03FF}, 0xCB80},
                     {"the least subnormal has -24", {0x8001}, 0xCE00},
                     {"0 has -infinity", {0x0000}, 0xFC00, kByZero},
                     {"-0 has -infinity", {0x8000}, 0xFC00, kByZero},
                     {"0 saturated", {0x0000}, 0xFBFF, kByZero, kSaturate},
                     {"-infinity has infinity", {0xFC00}, 0x7C00},
                     {"a quiet NaN", {0xFE01}, 0xFE01},
                     {"a signaling NaN, canonical", {0xFC01}, 0x7E00, kInvalid, kCanonical},
                     {"subnormals are zeros", {0x0001}, 0xFC00, kByZero, kDaz},
                 });

const Table kLogE5M2("e5m2 logB", halfscope::kFloat8E5M2, unary<halfscope::log_b>,
                     {
                         {"2^-13: 13 needs 4 digits, tie to even", {0x08}, 0xCA, kInexact},
                         {"2^-13 downward", {0x08}, 0xCB, kInexact, kDown},
                         {"2^-14 is exact", {0x04}, 0xCB},
                         {"2^-9: -9 ties to the even -8", {0x18}, 0xC8, kInexact},
                         {"2^11: 11 ties to the even 12", {0x68}, 0x4A, kInexact},
                     });

const Table kClass("binary16 class", halfscope::kBinary16, class_of,
                   {
                       {"7C01 signals", {0x7C01}, bits(Class::signaling_nan)},
                       {"7DFF signals", {0x7DFF}, bits(Class::signaling_nan)},
                       {"FC01 signals", {0xFC01}, bits(Class::signaling_nan)},
                       {"7E00 is quiet", {0x7E00}, bits(Class::quiet_nan)},
                       {"FFFF is quiet", {0xFFFF}, bits(Class::quiet_nan)},
                       {"FC00", {0xFC00}, bits(Class::negative_infinity)},
                       {"FBFF is the largest normal", {0xFBFF}, bits(Class::negative_normal)},
                       {"8400 is the least normal", {0x8400}, bits(Class::negative_normal)},
                       {"83FF is the largest subnormal", {0x83FF}, bits(Class::negative_subnormal)},
                       {"8001", {0x8001}, bits(Class::negative_subnormal)},
                       {"8000", {0x8000}, bits(Class::negative_zero)},
                       {"0000", {0x0000}, bits(Class::positive_zero)},
                       {"0001", {0x0001}, bits(Class::positive_subnormal)},
                       {"03FF", {0x03FF}, bits(Class::positive_subnormal)},
                       {"0400", {0x0400}, bits(Class::positive_normal)},
                       {"7BFF", {0x7BFF}, bits(Class::positive_normal)},
                       {"7C00", {0x7C00}, bits(Class::positive_infinity)},
                   });

const Table kClassE4M3("e4m3 class", halfscope::kFloat8E4M3, class_of,
                       {
                           {"7F is quiet: there is no other NaN", {0x7F}, bits(Class::quiet_nan)},
                           {"7E is normal", {0x7E}, bits(Class::positive_normal)},
                           {"F8 is no infinity", {0xF8}, bits(Class::negative_normal)},
                           {"87 is the largest subnormal", {0x87}, bits(Class::negative_subnormal)},
                       });

const Table kClassE2M1("e2m1 class", halfscope::kFloat4E2M1, class_of,
                       {
                           {"7 is normal", {0x7}, bits(Class::positive_normal)},
                           {"9 is the negative subnormal", {0x9}, bits(Class::negative_subnormal)},
                           {"8 is -0", {0x8}, bits(Class::negative_zero)},
                       });

TEST_CASE("rows: nextUp and nextDown", "[number][rows][table]") {
  kNextUp.check();
  kNextDown.check();
  kNextUpE4M3.check();
  kNextDownE2M1.check();
}

TEST_CASE("rows: scaleB and logB", "[number][rows][table]") {
  kScale.check();
  kLog.check();
  kLogE5M2.check();
}

TEST_CASE("rows: class", "[number][rows][table]") {
  kClass.check();
  kClassE4M3.check();
  kClassE2M1.check();
}

}  // namespace test_rows_neighbour
