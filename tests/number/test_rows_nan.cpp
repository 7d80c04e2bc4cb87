// SPDX-License-Identifier: Apache-2.0
// Rows of NaNs under each policy: which operand is kept (x86: the first NaN, quieted), what an
// invalid operation gives, and when invalid is raised (IEEE 754-2019, 6.2 and 7.2; the x86 manual's
// table of NaN results; RISC-V's canonical NaN; CUDA's 0x7FFF). In binary16: 7C01 to 7DFF are
// signaling, 7E00 to 7FFF quiet.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/remainder.hpp"
#include "number/rows.hpp"

namespace test_rows_nan {

using namespace rows;
using halfscope::kBinary16;

const Table kAdd(
    "binary16 add, NaNs", kBinary16, binary<halfscope::add>,
    {
        {"quiet + 1", {0x7E12, 0x3C00}, 0x7E12},
        {"1 + quiet", {0x3C00, 0xFE12}, 0xFE12},
        {"1 + signaling: quieted", {0x3C00, 0xFC12}, 0xFE12, kInvalid},
        {"quiet + quiet: the first", {0x7E01, 0x7E02}, 0x7E01},
        {"the other order", {0x7E02, 0x7E01}, 0x7E02},
        {"quiet + signaling: the first, not the signaling one", {0x7E01, 0x7C02}, 0x7E01, kInvalid},
        {"signaling + quiet: the first", {0x7C02, 0x7E01}, 0x7E02, kInvalid},
        {"signaling + signaling", {0xFC02, 0x7C01}, 0xFE02, kInvalid},
        {"infinity + quiet", {0x7C00, 0x7FFF}, 0x7FFF},
        {"canonical: quiet + 1", {0xFE12, 0x3C00}, 0x7E00, kNone, kCanonical},
        {"canonical: 1 + signaling", {0x3C00, 0xFC12}, 0x7E00, kInvalid, kCanonical},
        {"canonical: infinity - infinity", {0x7C00, 0xFC00}, 0x7E00, kInvalid, kCanonical},
        {"CUDA: quiet + 1", {0xFE12, 0x3C00}, 0x7FFF, kNone, kCuda},
        {"CUDA: signaling + 1", {0x7C01, 0x3C00}, 0x7FFF, kInvalid, kCuda},
        {"CUDA: infinity - infinity", {0x7C00, 0xFC00}, 0x7FFF, kInvalid, kCuda},
        {"DAZ: a NaN is none", {0x7C01, 0x0001}, 0x7E01, kInvalid, kDaz},
        {"saturated: NaN stays", {0x7E01, 0x7C00}, 0x7E01, kNone, kSaturate},
    });

const Table kMultiply(
    "binary16 multiply, NaNs", kBinary16, binary<halfscope::multiply>,
    {
        {"0 * quiet is no invalid operation", {0x0000, 0x7E12}, 0x7E12},
        {"the sign of the other operand does not matter", {0xBC00, 0x7E12}, 0x7E12},
        {"signaling * 0", {0x7DFF, 0x0000}, 0x7FFF, kInvalid},
        {"canonical: 0 * infinity", {0x0000, 0x7C00}, 0x7E00, kInvalid, kCanonical},
        {"CUDA: 0 * infinity", {0x8000, 0x7C00}, 0x7FFF, kInvalid, kCuda},
    });

const Table kFma(
    "binary16 fma, NaNs", kBinary16, ternary<halfscope::fused_multiply_add>,
    {
        {"a, b, c: the first is a", {0x7E01, 0x7E02, 0x7E03}, 0x7E01},
        {"b before c", {0x3C00, 0x7E02, 0x7E03}, 0x7E02},
        {"c alone", {0x3C00, 0x3C00, 0xFE03}, 0xFE03},
        {"c signaling", {0x3C00, 0x3C00, 0x7C03}, 0x7E03, kInvalid},
        {"a quiet, c signaling: a, invalid", {0x7E01, 0x3C00, 0x7C03}, 0x7E01, kInvalid},
        {"infinity * 0 + quiet: the default NaN", {0x7C00, 0x0000, 0x7E03}, 0xFE00, kInvalid},
        {"0 * infinity + quiet", {0x0000, 0xFC00, 0x7E03}, 0xFE00, kInvalid},
        {"infinity * 1 + quiet is not invalid", {0x7C00, 0x3C00, 0x7E03}, 0x7E03},
        {"quiet * 0 + infinity", {0x7E01, 0x0000, 0x7C00}, 0x7E01},
        {"canonical: infinity * 0 + quiet", {0x7C00, 0x0000, 0xFE03}, 0x7E00, kInvalid, kCanonical},
        {"canonical: c quiet", {0x3C00, 0x3C00, 0xFE03}, 0x7E00, kNone, kCanonical},
        {"CUDA: infinity * 0 + quiet", {0x7C00, 0x0000, 0x7E03}, 0x7FFF, kInvalid, kCuda},
        {"CUDA: b quiet", {0x3C00, 0xFE02, 0x3C00}, 0x7FFF, kNone, kCuda},
        {"DAZ: infinity * 0 + quiet", {0x7C00, 0x0001, 0x7E03}, 0xFE00, kInvalid, kDaz},
    });

const Table kDivide("binary16 divide, NaNs", kBinary16, binary<halfscope::divide>,
                    {
                        {"0 / 0, canonical", {0x0000, 0x0000}, 0x7E00, kInvalid, kCanonical},
                        {"0 / 0, CUDA", {0x0000, 0x0000}, 0x7FFF, kInvalid, kCuda},
                        {"1 / signaling", {0x3C00, 0xFDFF}, 0xFFFF, kInvalid},
                    });

const Table kRoot("binary16 square root, NaNs", kBinary16, unary<halfscope::square_root>,
                  {
                      {"a negative quiet NaN is not invalid", {0xFE12}, 0xFE12},
                      {"signaling", {0x7C12}, 0x7E12, kInvalid},
                      {"-1, canonical", {0xBC00}, 0x7E00, kInvalid, kCanonical},
                      {"-1, CUDA", {0xBC00}, 0x7FFF, kInvalid, kCuda},
                  });

const Table kRemainder("binary16 remainder, NaNs", kBinary16, binary<halfscope::remainder>,
                       {
                           {"infinity rem quiet is not invalid", {0x7C00, 0x7E12}, 0x7E12},
                           {"quiet rem 0 is not invalid", {0x7E12, 0x0000}, 0x7E12},
                           {"1 rem 0, CUDA", {0x3C00, 0x0000}, 0x7FFF, kInvalid, kCuda},
                       });

const Table kFromBinary32(
    "binary32 to binary16, NaNs", kBinary16, convert_from<halfscope::kBinary32>,
    {
        {"the top payload bits stay", {0xFFD54000}, 0xFEAA},
        {"low payload bits alone: not an infinity", {0x7F800001}, 0x7E00, kInvalid},
        {"canonical", {0xFFD54000}, 0x7E00, kNone, kCanonical},
        {"CUDA", {0xFFD54000}, 0x7FFF, kNone, kCuda},
        {"CUDA, signaling", {0xFF800001}, 0x7FFF, kInvalid, kCuda},
    });

const Table kToBinary32("binary16 to binary32, NaNs", halfscope::kBinary32, convert_from<kBinary16>,
                        {
                            {"the payload moves to the top", {0x7EAA}, 0x7FD54000},
                            {"signaling: quieted", {0xFC01}, 0xFFC02000, kInvalid},
                            {"CUDA: all ones", {0xFE00}, 0x7FFFFFFF, kNone, kCuda},
                            {"canonical", {0xFEAA}, 0x7FC00000, kNone, kCanonical},
                        });

const Table kE5M2("e5m2 add, NaNs", halfscope::kFloat8E5M2, binary<halfscope::add>,
                  {
                      {"7D is the one signaling NaN", {0x7D, 0x3C}, 0x7F, kInvalid},
                      {"7E is quiet", {0x3C, 0x7E}, 0x7E},
                      {"infinity - infinity", {0x7C, 0xFC}, 0xFE, kInvalid},
                      {"CUDA: all ones in 8 bits as well", {0xFF, 0x3C}, 0x7F, kNone, kCuda},
                  });

const Table kE4M3("e4m3 multiply, NaNs", halfscope::kFloat8E4M3, binary<halfscope::multiply>,
                  {
                      {"the sign stays", {0x38, 0xFF}, 0xFF},
                      {"CUDA drops it", {0x38, 0xFF}, 0x7F, kNone, kCuda},
                      {"0 * NaN raises nothing: it is quiet", {0x00, 0x7F}, 0x7F},
                  });

const Table kE2M3("e2m3 square root, no NaN", halfscope::kFloat6E2M3, unary<halfscope::square_root>,
                  {
                      {"-1: the positive largest, invalid", {0x28}, 0x1F, kInvalid},
                      {"-1, canonical: the same", {0x28}, 0x1F, kInvalid, kCanonical},
                      {"-0 has a root", {0x20}, 0x20},
                  });

TEST_CASE("rows: NaN policies of arithmetic", "[number][rows][table]") {
  kAdd.check();
  kMultiply.check();
  kFma.check();
  kDivide.check();
  kRoot.check();
  kRemainder.check();
}

TEST_CASE("rows: NaN policies of conversions", "[number][rows][table]") {
  kFromBinary32.check();
  kToBinary32.check();
}

TEST_CASE("rows: NaNs of small formats", "[number][rows][table]") {
  kE5M2.check();
  kE4M3.check();
  kE2M3.check();
}

}  // namespace test_rows_nan
