// SPDX-License-Identifier: Apache-2.0
// Rows of the comparisons (5.11), of totalOrder (5.10) and of minimum and maximum (9.6 and, of the
// 2008 standard, 5.3.1). In binary16: 7C01 to 7DFF are signaling NaNs, 7E00 to 7FFF quiet ones.
// Results by hand from the standard, see rows.hpp.
#include "catch.hpp"
#include "halfscope/number/compare.hpp"
#include "number/rows.hpp"

namespace test_rows_compare {

using namespace rows;

Rounded unordered_in(Format f, const Operands& x, const Modes&) {
  const halfscope::Compared c = halfscope::unordered(f, x[0], x[1]);
  return {c.result ? 1U : 0U, c.flags};
}
Rounded total_order_in(Format f, const Operands& x, const Modes&) {
  return {halfscope::total_order(f, x[0], x[1]) ? 1U : 0U, {}};
}

const Table kEqual("binary16 equal, quiet", halfscope::kBinary16,
                   comparison<halfscope::equal, OnNan::quiet>,
                   {
                       {"1 = 1", {0x3C00, 0x3C00}, 1},
                       {"1 = 1 + ulp", {0x3C00, 0x3C01}, 0},
                       {"1 = -1", {0x3C00, 0xBC00}, 0},
                       {"+0 = -0", {0x0000, 0x8000}, 1},
                       {"-0 = +0", {0x8000, 0x0000}, 1},
                       {"0 = the least subnormal", {0x0000, 0x0001}, 0},
                       {"DAZ: 0 = the least subnormal", {0x0000, 0x0001}, 1, kNone, kDaz},
                       {"DAZ: of either sign", {0x83FF, 0x0001}, 1, kNone, kDaz},
                       {"infinity = infinity", {0x7C00, 0x7C00}, 1},
                       {"infinity = -infinity", {0x7C00, 0xFC00}, 0},
                       {"a quiet NaN equals nothing, itself included", {0x7E00, 0x7E00}, 0},
                       {"1 = a signaling NaN", {0x3C00, 0x7C01}, 0, kInvalid},
                       {"a signaling NaN = a quiet one", {0xFC01, 0x7E00}, 0, kInvalid},
                   });

const Table kEqualSignaling("binary16 equal, signaling", halfscope::kBinary16,
                            comparison<halfscope::equal, OnNan::signaling>,
                            {
                                {"a quiet NaN is invalid here", {0x7E00, 0x3C00}, 0, kInvalid},
                                {"+0 = -0 raises nothing", {0x0000, 0x8000}, 1},
                            });

const Table kLess("binary16 less, signaling", halfscope::kBinary16,
                  comparison<halfscope::less, OnNan::signaling>,
                  {
                      {"1 < 1 + ulp", {0x3C00, 0x3C01}, 1},
                      {"1 < 1", {0x3C00, 0x3C00}, 0},
                      {"-1 < -2", {0xBC00, 0xC000}, 0},
                      {"-2 < -1", {0xC000, 0xBC00}, 1},
                      {"-1 < 1", {0xBC00, 0x3C00}, 1},
                      {"1 < -1", {0x3C00, 0xBC00}, 0},
                      {"-0 < +0", {0x8000, 0x0000}, 0},
                      {"+0 < -0", {0x0000, 0x8000}, 0},
                      {"-the least subnormal < +0", {0x8001, 0x0000}, 1},
                      {"-0 < the least subnormal", {0x8000, 0x0001}, 1},
                      {"the largest subnormal < the least normal", {0x03FF, 0x0400}, 1},
                      {"DAZ: -the least < +0", {0x8001, 0x0000}, 0, kNone, kDaz},
                      {"65504 < infinity", {0x7BFF, 0x7C00}, 1},
                      {"-infinity < -65504", {0xFC00, 0xFBFF}, 1},
                      {"infinity < infinity", {0x7C00, 0x7C00}, 0},
                      {"1 < a quiet NaN is invalid", {0x3C00, 0x7E00}, 0, kInvalid},
                      {"a quiet NaN < infinity is invalid", {0xFE00, 0x7C00}, 0, kInvalid},
                  });

const Table kLessQuiet("binary16 less, quiet", halfscope::kBinary16,
                       comparison<halfscope::less, OnNan::quiet>,
                       {
                           {"1 < a quiet NaN", {0x3C00, 0x7E00}, 0},
                           {"1 < a signaling NaN", {0x3C00, 0x7C01}, 0, kInvalid},
                           {"-infinity < infinity", {0xFC00, 0x7C00}, 1},
                       });

const Table kLessEqual("binary16 less or equal, signaling", halfscope::kBinary16,
                       comparison<halfscope::less_equal, OnNan::signaling>,
                       {
                           {"1 <= 1", {0x3C00, 0x3C00}, 1},
                           {"1 + ulp <= 1", {0x3C01, 0x3C00}, 0},
                           {"+0 <= -0", {0x0000, 0x8000}, 1},
                           {"-infinity <= -infinity", {0xFC00, 0xFC00}, 1},
                           {"a NaN <= itself", {0x7E00, 0x7E00}, 0, kInvalid},
                       });

const Table kLessEqualQuiet("binary16 less or equal, quiet", halfscope::kBinary16,
                            comparison<halfscope::less_equal, OnNan::quiet>,
                            {
                                {"a NaN <= 1", {0x7E00, 0x3C00}, 0},
                                {"a signaling NaN <= 1", {0x7DFF, 0x3C00}, 0, kInvalid},
                                {"-1 <= 1", {0xBC00, 0x3C00}, 1},
                            });

const Table kUnordered("binary16 unordered", halfscope::kBinary16, unordered_in,
                       {
                           {"1 and 2", {0x3C00, 0x4000}, 0},
                           {"1 and a quiet NaN", {0x3C00, 0x7E00}, 1},
                           {"a signaling NaN and 1", {0x7C01, 0x3C00}, 1, kInvalid},
                           {"infinities are ordered", {0x7C00, 0xFC00}, 0},
                       });

const Table kLessOther("e4m3 less, signaling", halfscope::kFloat8E4M3,
                       comparison<halfscope::less, OnNan::signaling>,
                       {
                           {"448 < NaN is invalid", {0x7E, 0x7F}, 0, kInvalid},
                           {"416 < 448: the top field holds numbers", {0x7D, 0x7E}, 1},
                       });

const Table kEqualFinite("e2m1 equal, quiet", halfscope::kFloat4E2M1,
                         comparison<halfscope::equal, OnNan::quiet>,
                         {
                             {"6 = 6: no encoding is NaN", {0x7, 0x7}, 1},
                             {"-0 = +0", {0x8, 0x0}, 1},
                         });

const Table kTotalOrder("binary16 totalOrder", halfscope::kBinary16, total_order_in,
                        {
                            {"1, 1", {0x3C00, 0x3C00}, 1},
                            {"1, 2", {0x3C00, 0x4000}, 1},
                            {"2, 1", {0x4000, 0x3C00}, 0},
                            {"-2, -1", {0xC000, 0xBC00}, 1},
                            {"-1, -2", {0xBC00, 0xC000}, 0},
                            {"-0, +0", {0x8000, 0x0000}, 1},
                            {"+0, -0", {0x0000, 0x8000}, 0},
                            {"-0, -0", {0x8000, 0x8000}, 1},
                            {"infinity, a signaling NaN", {0x7C00, 0x7C01}, 1},
                            {"a signaling NaN, infinity", {0x7C01, 0x7C00}, 0},
                            {"+: signaling below quiet", {0x7DFF, 0x7E00}, 1},
                            {"+: quiet, signaling", {0x7E00, 0x7DFF}, 0},
                            {"+: the lesser payload is below", {0x7E00, 0x7E01}, 1},
                            {"+: the greater payload is above", {0x7FFF, 0x7E00}, 0},
                            {"-: quiet below signaling", {0xFE00, 0xFDFF}, 1},
                            {"-: signaling, quiet", {0xFDFF, 0xFE00}, 0},
                            {"-: the greater payload is below", {0xFFFF, 0xFE00}, 1},
                            {"-: the lesser payload is above", {0xFE00, 0xFFFF}, 0},
                            {"-NaN, -infinity", {0xFC01, 0xFC00}, 1},
                            {"-infinity, -NaN", {0xFC00, 0xFC01}, 0},
                            {"-NaN, +NaN", {0xFE00, 0x7E00}, 1},
                            {"+NaN, -NaN", {0x7E00, 0xFE00}, 0},
                            {"a NaN, itself", {0x7E12, 0x7E12}, 1},
                            {"a signaling NaN raises nothing", {0x7C01, 0x3C00}, 0},
                        });

TEST_CASE("rows: comparisons", "[number][rows][table]") {
  kEqual.check();
  kEqualSignaling.check();
  kLess.check();
  kLessQuiet.check();
  kLessEqual.check();
  kLessEqualQuiet.check();
  kUnordered.check();
  kLessOther.check();
  kEqualFinite.check();
}

TEST_CASE("rows: totalOrder", "[number][rows][table]") { kTotalOrder.check(); }

}  // namespace test_rows_compare
