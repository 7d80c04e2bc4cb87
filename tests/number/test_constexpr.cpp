// SPDX-License-Identifier: Apache-2.0
// Arithmetic, conversions and comparisons are constant expressions: the compiler is the test, in
// every line below. The values are rows of test_rows_*.cpp and rounded by hand as they are.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/remainder.hpp"

namespace test_constexpr {

using namespace halfscope;

constexpr Format f = kBinary16;
constexpr Modes kUp = {.rounding = Rounding::upward};
constexpr Modes kDown = {.rounding = Rounding::downward};

constexpr bool gives(const Rounded& r, std::uint64_t bits, const Flags& flags = {}) {
  return r.bits == bits && r.flags == flags;
}
constexpr bool says(const Compared& c, bool result, bool invalid = false) {
  return c.result == result && c.flags == Flags{.invalid = invalid};
}
constexpr Flags kInexact = {.inexact = true};
constexpr Flags kTiny = {.underflow = true, .inexact = true};
constexpr Flags kOverflow = {.overflow = true, .inexact = true};
constexpr Flags kInvalid = {.invalid = true};

// Arithmetic, in one format after the other.
static_assert(gives(add(f, 0x3C00, 0x1000), 0x3C00, kInexact));
static_assert(gives(add(f, 0x3C00, 0x1000, kUp), 0x3C01, kInexact));
static_assert(gives(add(f, 0x3C00, 0xBC00, kDown), 0x8000));
static_assert(gives(add(f, 0x7BFF, 0x4C00), 0x7C00, kOverflow));
static_assert(gives(add(f, 0x7C00, 0xFC00), 0xFE00, kInvalid));
static_assert(gives(subtract(f, 0x0400, 0x0001), 0x03FF));
static_assert(gives(multiply(f, 0x03FF, 0x3C01), 0x0400, kInexact));
static_assert(gives(multiply(f, 0x03FF, 0x3C01, {.tininess = Tininess::before_rounding}), 0x0400,
                    kTiny));
static_assert(gives(multiply(f, 0x2000, 0x1C00, {.flush_to_zero = true}), 0x0000, kTiny));
static_assert(gives(divide(f, 0x3C00, 0x4200), 0x3555, kInexact));
static_assert(gives(divide(f, 0x3C00, 0x0000), 0x7C00, {.divide_by_zero = true}));
static_assert(gives(fused_multiply_add(f, 0x39C0, 0xC3FE, 0x07FE), 0xC1BF, kInexact));
static_assert(gives(square_root(f, 0x4000), 0x3DA8, kInexact));
static_assert(gives(square_root(f, 0x8000), 0x8000));
static_assert(gives(remainder(f, 0x4500, 0x4200), 0xBC00));
static_assert(gives(add(kBinary32, 0x3F800000, 0x33800001), 0x3F800001, kInexact));
static_assert(gives(multiply(kBfloat16, 0x3FC0, 0x3F81), 0x3FC2, kInexact));
static_assert(gives(multiply(kTf32, 0x1FE00, 0x1FC01), 0x1FE02, kInexact));
static_assert(gives(add(kFloat8E4M3, 0x7E, 0x59), 0x7F, kOverflow));
static_assert(gives(multiply(kFloat8E5M2, 0x3D, 0x3E), 0x40, kInexact));
static_assert(gives(divide(kFloat6E3M2, 0x0C, 0x00), 0x1F, {.divide_by_zero = true}));
static_assert(gives(square_root(kFloat6E2M3, 0x28), 0x1F, kInvalid));
static_assert(gives(multiply(kFloat4E2M1, 0x5, 0x5), 0x7, kOverflow));

// Modes.
static_assert(gives(add(f, 0x7BFF, 0x7BFF, {.saturate = true}), 0x7BFF, kOverflow));
static_assert(gives(add(f, 0x3C00, 0x03FF, {.denormals_are_zero = true}), 0x3C00));
static_assert(gives(add(f, 0xFE12, 0x3C00, {.nan = NanPolicy::cuda}), 0x7FFF));
static_assert(gives(from_double(f, 0x1.001p0,
                                {.rounding = Rounding::stochastic, .random = 0, .random_bits = 2}),
                    0x3C01, kInexact));
static_assert(gives(from_double(f, 0x1.001p0,
                                {.rounding = Rounding::stochastic, .random = 1, .random_bits = 2}),
                    0x3C00, kInexact));

// Conversions.
static_assert(gives(from_double(f, 65520.0), 0x7C00, kOverflow));
static_assert(gives(from_float(f, 0x1p-25f), 0x0000, kTiny));
static_assert(gives(from_double(f, 0x1.0020000000001p0), 0x3C01, kInexact));
static_assert(gives(convert(kBinary32, f, 0x7EAA), 0x7FD54000));
static_assert(gives(convert(kFloat4E2M1, f, 0x4300), 0x6, kInexact));
static_assert(to_double(f, 0x0001) == 0x1p-24);
static_assert(gives(round_to_integral(f, 0x4100), 0x4000));
static_assert(gives(round_to_integral(f, 0x4100, kUp, true), 0x4200, kInexact));
static_assert(gives(to_integer(IntegerType::i32, f, 0xBE00, {}, true), 0xFFFFFFFE, kInexact));
static_assert(gives(to_integer(IntegerType::u64, f, 0xFC00), ~std::uint64_t{0}, kInvalid));
static_assert(gives(from_integer(f, IntegerType::i32, 0xFFFFFFFF), 0xBC00));
static_assert(gives(from_integer(f, IntegerType::u64, 2049), 0x6800, kInexact));

// Comparisons, minimum and maximum, neighbours, classes.
static_assert(says(equal(f, 0x0000, 0x8000), true));
static_assert(says(less(f, 0x3C00, 0x7E00), false, true));
static_assert(says(less(f, 0x3C00, 0x7E00, OnNan::quiet), false));
static_assert(says(less_equal(f, 0xBC00, 0x3C00), true));
static_assert(says(unordered(f, 0x7E00, 0x3C00), true));
static_assert(total_order(f, 0x8000, 0x0000) && !total_order(f, 0x0000, 0x8000));
static_assert(gives(minimum(f, 0x3C00, 0x7E12), 0x7E12));
static_assert(gives(maximum(f, 0x0000, 0x8000), 0x0000));
static_assert(gives(minimum_number(f, 0x3C00, 0x7C12), 0x3C00, kInvalid));
static_assert(gives(maximum_number(f, 0x3C00, 0x7E12), 0x3C00));
static_assert(gives(min_num(f, 0x3C00, 0x7C12), 0x7E12, kInvalid));
static_assert(gives(max_num(f, 0xFC00, 0x7E12), 0xFC00));
static_assert(gives(next_up(f, 0x8001), 0x8000));
static_assert(gives(next_down(f, 0x0000), 0x8001));
static_assert(gives(scale_b(f, 0x3C00, -25), 0x0000, kTiny));
static_assert(gives(log_b(f, 0x0001), 0xCE00));
static_assert(negate(f, 0x7E00) == 0xFE00 && absolute(f, 0xFE00) == 0x7E00);
static_assert(copy_sign(f, 0x3C00, 0x8000) == 0xBC00);
static_assert(classify(f, 0x7C01) == Class::signaling_nan);
static_assert(classify(kFloat8E4M3, 0x87) == Class::negative_subnormal);

// Flags combine.
static_assert((kInexact | kInvalid) == Flags{.invalid = true, .inexact = true});

TEST_CASE("a table of products can be made by the compiler", "[number][constexpr][table]") {
  struct Squares {
    std::uint64_t bits[16];
    Flags flags;
  };
  constexpr Squares squares = [] {
    Squares out = {};
    for (std::uint64_t i = 0; i < 16; ++i) {
      const Rounded r = multiply(kFloat8E4M3, 0x38 + i, 0x38 + i);  // 1, 1.125, ..., 3.75
      out.bits[i] = r.bits;
      out.flags |= r.flags;
    }
    return out;
  }();
  CHECK(squares.bits[0] == 0x38);   // 1
  CHECK(squares.bits[1] == 0x3A);   // 1.265625, nearest 1.25
  CHECK(squares.bits[4] == 0x41);   // 1.5^2 = 2.25
  CHECK(squares.bits[8] == 0x48);   // 2^2 = 4
  CHECK(squares.bits[15] == 0x56);  // 3.75^2 = 14.0625, nearest 14
  CHECK(squares.flags == kInexact);
}

}  // namespace test_constexpr
