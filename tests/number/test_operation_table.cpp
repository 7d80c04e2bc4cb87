// SPDX-License-Identifier: Apache-2.0
// The names lead to the right functions: a row for each operation, which TestFloat's vectors (they
// know binary16 alone, and may be missing) do not show. What the functions compute is judged
// elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <set>

#include "catch.hpp"
#include "halfscope/number/operation_table.hpp"

namespace test_operation_table {

using namespace halfscope;

struct Row {
  std::string_view name;
  Operands operands;
  std::uint64_t bits;
  unsigned flags;
};

std::string answer(std::string_view name, const Operands& operands, const Modes& modes = {},
                   bool exact = false) {
  const Operation* const operation = find_operation(name);
  if (operation == nullptr) return "unknown";
  const Rounded r = (*operation)(operands, modes, exact);
  return fmt::format("{:X} {:02X}", r.bits, flag_bits(r.flags));
}

// Chosen so that a mix-up of two operations shows. 7C01 is a signaling NaN, 7E00 a quiet one.
const Row kHalfRows[] = {
    {"f16_add", {0x4200, 0x3C00}, 0x4400, 0x00},             // 3 + 1
    {"f16_sub", {0x4200, 0x3C00}, 0x4000, 0x00},             // 3 - 1
    {"f16_mul", {0x4200, 0x4000}, 0x4600, 0x00},             // 3 * 2
    {"f16_mulAdd", {0x39C0, 0xC3FE, 0x07FE}, 0xC1BF, 0x01},  // C1BE by way of binary32
    {"f16_div", {0x4200, 0x4000}, 0x3E00, 0x00},             // 3 / 2
    {"f16_div", {0x4200, 0x8000}, 0xFC00, 0x08},             // 3 / -0
    {"f16_rem", {0x4500, 0x4200}, 0xBC00, 0x00},             // 5 - 2 * 3
    {"f16_sqrt", {0x4400}, 0x4000, 0x00},                    // sqrt(4)
    {"f16_sqrt", {0xC400}, 0xFE00, 0x10},                    // sqrt(-4)
    {"f16_roundToInt", {0x4100}, 0x4000, 0x00},              // 2.5: tie to even
    {"f16_eq", {0x8000, 0x0000}, 1, 0x00},                   // -0 = +0
    {"f16_eq", {0x7E00, 0x7E00}, 0, 0x00},
    {"f16_eq", {0x7C01, 0x3C00}, 0, 0x10},
    {"f16_eq_signaling", {0x7E00, 0x3C00}, 0, 0x10},
    {"f16_le", {0x3C00, 0x3C00}, 1, 0x00},
    {"f16_le", {0x7E00, 0x3C00}, 0, 0x10},
    {"f16_le_quiet", {0x7E00, 0x3C00}, 0, 0x00},
    {"f16_le_quiet", {0x3C00, 0x3C00}, 1, 0x00},
    {"f16_lt", {0x3C00, 0x3C00}, 0, 0x00},
    {"f16_lt", {0x3C00, 0x7E00}, 0, 0x10},
    {"f16_lt", {0x3C00, 0x4000}, 1, 0x00},
    {"f16_lt_quiet", {0x3C00, 0x7E00}, 0, 0x00},
    {"f16_lt_quiet", {0x3C00, 0x4000}, 1, 0x00},
    {"f16_totalOrder", {0x8000, 0x0000}, 1, 0x00},  // -0 before +0
    {"f16_totalOrder", {0x0000, 0x8000}, 0, 0x00},
    {"f16_minimum", {0x0000, 0x8000}, 0x8000, 0x00},
    {"f16_maximum", {0x8000, 0x0000}, 0x0000, 0x00},
    {"f16_minimum", {0x3C00, 0x7E00}, 0x7E00, 0x00},  // a NaN wins
    {"f16_maximum", {0x3C00, 0x7E00}, 0x7E00, 0x00},
    {"f16_minimumNumber", {0x3C00, 0x7E00}, 0x3C00, 0x00},  // the number wins
    {"f16_maximumNumber", {0x3C00, 0x7E00}, 0x3C00, 0x00},
    {"f16_minimumNumber", {0x3C00, 0x7C01}, 0x3C00, 0x10},  // over a signaling one, too
    {"f16_minimumNumber", {0x3C00, 0x4000}, 0x3C00, 0x00},
    {"f16_maximumNumber", {0x3C00, 0x4000}, 0x4000, 0x00},
    {"f16_minNum", {0x3C00, 0x7E00}, 0x3C00, 0x00},
    {"f16_maxNum", {0x3C00, 0x7E00}, 0x3C00, 0x00},
    {"f16_minNum", {0x3C00, 0x7C01}, 0x7E01, 0x10},  // 2008: a signaling one wins, quieted
    {"f16_minNum", {0x3C00, 0x4000}, 0x3C00, 0x00},
    {"f16_maxNum", {0x3C00, 0x4000}, 0x4000, 0x00},
    {"f16_nextUp", {0x0000}, 0x0001, 0x00},
    {"f16_nextDown", {0x0000}, 0x8001, 0x00},
    {"f16_logB", {0x4900}, 0x4200, 0x00},                // 10 is in [2^3, 2^4)
    {"f16_scaleB", {0x3C00, 0xFFFFFFFF}, 0x3800, 0x00},  // 1 * 2^-1
    {"f16_scaleB", {0x3C00, 3}, 0x4800, 0x00},           // 1 * 2^3
};

const Row kConversionRows[] = {
    {"f16_to_f32", {0x3C01}, 0x3F802000, 0x00},
    {"f16_to_f64", {0x3C01}, 0x3FF0040000000000, 0x00},
    {"f32_to_f16", {0x3F801000}, 0x3C00, 0x01},  // a tie
    {"f64_to_f16", {0x3FF0020000000001}, 0x3C01, 0x01},
    {"f64_to_f32", {0x3FF0000010000001}, 0x3F800001, 0x01},
    {"f16_to_bf16", {0x3C00}, 0x3F80, 0x00},
    {"bf16_to_f16", {0x3F80}, 0x3C00, 0x00},
    {"tf32_to_f32", {0x1FC01}, 0x3F802000, 0x00},
    {"f32_to_tf32", {0x3F802000}, 0x1FC01, 0x00},
    {"f32_to_e4m3", {0x43E00000}, 0x7E, 0x00},  // 448
    {"f32_to_e5m2", {0x47600000}, 0x7B, 0x00},  // 57344
    {"f32_to_e3m2", {0x41E00000}, 0x1F, 0x00},  // 28
    {"f32_to_e2m3", {0x40F00000}, 0x1F, 0x00},  // 7.5
    {"f32_to_e2m1", {0x40C00000}, 0x07, 0x00},  // 6
    {"e2m1_to_f16", {0x0F}, 0xC600, 0x00},
    {"f16_to_i32", {0xC100}, 0xFFFFFFFE, 0x00},  // -2.5
    {"f16_to_i64", {0xC100}, 0xFFFFFFFFFFFFFFFE, 0x00},
    {"f16_to_ui32", {0xC100}, 0xFFFFFFFF, 0x10},
    {"f16_to_ui64", {0x4100}, 2, 0x00},
    {"f32_to_i32", {0x4F000000}, 0x80000000, 0x10},  // 2^31
    {"f32_to_ui32", {0x4F000000}, 0x80000000, 0x00},
    {"i32_to_f16", {0xFFFFFFFF}, 0xBC00, 0x00},
    {"i64_to_f16", {0xFFFFFFFFFFFFFFFF}, 0xBC00, 0x00},
    {"ui32_to_f16", {0xFFFFFFFF}, 0x7C00, 0x05},
    {"ui64_to_bf16", {0xFFFFFFFFFFFFFFFF}, 0x5F80, 0x01},
    {"ui32_to_f64", {0xFFFFFFFF}, 0x41EFFFFFFFE00000, 0x00},
};

// 1 + 1 in every other format.
const Row kAddRows[] = {
    {"bf16_add", {0x3F80, 0x3F80}, 0x4000, 0},
    {"tf32_add", {0x1FC00, 0x1FC00}, 0x20000, 0},
    {"f32_add", {0x3F800000, 0x3F800000}, 0x40000000, 0},
    {"e4m3_add", {0x38, 0x38}, 0x40, 0},
    {"e5m2_add", {0x3C, 0x3C}, 0x40, 0},
    {"e3m2_add", {0x0C, 0x0C}, 0x10, 0},
    {"e2m3_add", {0x08, 0x08}, 0x10, 0},
    {"e2m1_add", {0x02, 0x02}, 0x04, 0},
};

template <std::size_t N>
void check(const Row (&rows)[N]) {
  for (const Row& row : rows) {
    CAPTURE(row.name, row.operands);
    CHECK(answer(row.name, row.operands) == fmt::format("{:X} {:02X}", row.bits, row.flags));
  }
}

TEST_CASE("operation names lead to their operations", "[number][operation][table]") {
  check(kHalfRows);
  check(kConversionRows);
  check(kAddRows);
}

TEST_CASE("every format has every operation, once", "[number][operation]") {
  std::set<std::string> names;
  for (const Operation& o : operations()) names.insert(o.name);
  CHECK(names.size() == operations().size());
  for (const std::string f :
       {"f16", "bf16", "tf32", "f32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
    for (const Row& row : kHalfRows) {
      CHECK(names.count(f + std::string(row.name.substr(3))) == 1);
    }
    for (const std::string other : {"f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "e3m2",
                                    "e2m3", "e2m1", "i32", "i64", "ui32", "ui64"}) {
      CHECK(names.count(f + "_to_" + other) == (f == other ? 0 : 1));
      CHECK(names.count(other + "_to_" + f) == (f == other ? 0 : 1));
    }
  }
}

TEST_CASE("words have the width that TestFloat writes", "[number][operation]") {
  const auto digits = [](std::string_view name) {
    const Operation* const o = find_operation(name);
    REQUIRE(o != nullptr);
    return fmt::format("{} {}", o->takes.back().hex_digits(), o->gives.hex_digits());
  };
  CHECK(digits("f16_add") == "4 4");
  CHECK(digits("f32_lt") == "8 1");
  CHECK(digits("f64_to_i32") == "16 8");
  CHECK(digits("i64_to_tf32") == "16 5");
  CHECK(digits("e4m3_to_e3m2") == "2 2");
  CHECK(digits("f16_to_e2m1") == "4 1");
  CHECK(digits("f16_scaleB") == "8 4");
}

TEST_CASE("modes reach the operations", "[number][operation][table]") {
  CHECK(answer("f16_roundToInt", {0x4100}, {.rounding = Rounding::upward}) == "4200 00");
  CHECK(answer("f16_roundToInt", {0x4100}, {}, true) == "4000 01");
  CHECK(answer("f16_to_i32", {0x4100}, {.rounding = Rounding::ties_to_away}, true) == "3 01");
  CHECK(answer("i32_to_f16", {2049}, {.rounding = Rounding::upward}) == "6801 01");
  CHECK(answer("f16_to_i32", {0x7E00}, {.nan = NanPolicy::canonical}) == "7FFFFFFF 10");
  CHECK(answer("f16_add", {0x7D01, 0}, {.nan = NanPolicy::cuda}) == "7FFF 10");
  CHECK(answer("f16_mulAdd", {0x7BFF, 0x7BFF, 0}, {.saturate = true}) == "7BFF 05");
  CHECK(answer("f16_eq", {0x0001, 0x0000}, {.denormals_are_zero = true}) == "1 00");
  CHECK(answer("f32_to_f16", {0x33800000}, {.flush_to_zero = true}) == "0 03");
  CHECK(answer("f16_scaleB", {0x3C00, 0xFFFFFFE7}, {.rounding = Rounding::upward}) == "1 03");
}

TEST_CASE("a wrong name finds the right one", "[number][operation]") {
  const auto first = [](std::string_view name) { return similar_operations(name, 3).at(0); };
  CHECK(first("f16_muladd") == "f16_mulAdd");
  CHECK(first("f16_fma") == "f16_mulAdd");
  CHECK(first("fp16_sqrt") == "f16_sqrt");
  CHECK(first("F32_TO_F16") == "f32_to_f16");
  CHECK(first("f16_to_int32") == "f16_to_i32");
  CHECK(first("f16_subtract") == "f16_sub");
  CHECK(first("bf16_max") == "bf16_maximum");
  CHECK(similar_operations(std::string(1 << 20, 'x'), 3).size() == 3);
  CHECK(similar_operations("", 1000).size() == operations().size());
}

#if defined(__x86_64__)  // its answer to what is not an integer is NanPolicy::x86's
TEST_CASE("binary64 to 64-bit integers as the processor", "[number][operation][oracle]") {
  const Operation* const operation = find_operation("f64_to_i64");
  REQUIRE(operation != nullptr);
  std::string first_wrong;
  for (std::uint64_t i = 0; i < 400000 && first_wrong.empty(); ++i) {
    const std::uint64_t mixed = i * 0x9E3779B97F4A7C15u;
    // Exponents around those of integers; every 16th anything at all.
    const std::uint64_t field = i % 16 == 0 ? mixed >> 53 : 1020 + (mixed >> 40) % 70;
    const std::uint64_t bits = (mixed & 0x800FFFFFFFFFFFFF) | field << 52;
    std::feclearexcept(FE_ALL_EXCEPT);
    volatile const double x = std::bit_cast<double>(bits);
    volatile const auto converted = std::llrint(x);  // volatile: between the calls on its flags

    const unsigned flags =
        (std::fetestexcept(FE_INVALID) ? 0x10u : 0u) | (std::fetestexcept(FE_INEXACT) ? 0x01u : 0u);
    const auto want = static_cast<std::uint64_t>(std::int64_t{converted});
    const Rounded got = (*operation)({bits}, {}, true);
    if (got.bits != want || flag_bits(got.flags) != flags) {
      first_wrong = fmt::format("{:016X}: {:X} {:02X}, expected {:X} {:02X}", bits, got.bits,
                                flag_bits(got.flags), want, flags);
    }
  }
  REQUIRE(first_wrong == "");
}
#endif

}  // namespace test_operation_table
