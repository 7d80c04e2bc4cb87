// SPDX-License-Identifier: Apache-2.0
// The step of a Tensor Core: known answers, sums of exact integers, and special values by table, by
// chain() and by gemm(). Published results: test_published.cpp.
#include <boost/multiprecision/cpp_int.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/tensor_core/mma.hpp"
#include "tensor_core/gemm_judge.hpp"
#include "tensor_core/known_answers.hpp"
#include "vector_target.hpp"

namespace test_mma {

using namespace halfscope;
using namespace halfscope::tensor_core;
using boost::multiprecision::cpp_int;

using test::Halves;
using test::to_half;
using test::whole_chain;

constexpr Accumulator kHalf = Accumulator::binary16, kWide = Accumulator::binary32;

struct Card {
  const char* name;
  Unit unit;
};
constexpr Card kCards[] = {{"V100", kVolta}, {"A100", kAmpere}, {"H100", kHopper}};

/// By chain(), and the same by gemm().
std::uint32_t both(const Unit& unit, Accumulator d, const Halves& a, const Halves& b,
                   std::uint32_t c) {
  const std::uint32_t out = whole_chain(unit, d, a, b, c);
  const test::GemmInput in = {{1, 1, static_cast<std::int64_t>(a.size())}, a, b, {c}};
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    CAPTURE(target);
    CHECK(test::difference({.unit = unit, .accumulator = d, .threads = 1}, in) == "");
  }
  return out;
}

Halves parsed(const std::string& hex) {
  Halves out;
  std::stringstream in(hex);
  for (std::string one; std::getline(in, one, ',');) {
    out.push_back(static_cast<std::uint16_t>(std::stoul(one, nullptr, 16)));
  }
  out.resize(16);
  return out;
}

// The same step in exact integers: everything in units of 2^kLeast, divided instead of shifted.

constexpr int kLeast = -400;

cpp_int in_units(const Unpacked& x) {
  const cpp_int value = cpp_int(x.significand) << (x.exponent - kLeast);
  return x.negative ? cpp_int(-value) : value;
}

cpp_int power(int exponent) { return cpp_int(1) << (exponent - kLeast); }

/// Exponent field of a finite encoding; a subnormal's is emin.
int exponent_of(Format f, std::uint32_t bits) {
  const auto magnitude = static_cast<std::uint32_t>(bits & f.magnitude_mask());
  return std::max(f.emin(), static_cast<int>(magnitude >> f.fraction_bits()) - f.emax);
}

/// The nearest, ties to even, or the next toward zero, among all encodings, by bisection. Every
/// zero is +0.
std::uint32_t rounded(Format f, const cpp_int& value, bool to_nearest) {
  const cpp_int size = abs(value);
  auto value_of = [&](std::uint64_t code) { return in_units(unpack(f, code)); };
  std::uint64_t low = 0, high = f.infinity();  // value_of(low) <= size
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (value_of(middle) <= size ? low : high) = middle;
  }
  if (to_nearest) {
    const cpp_int above = low == f.largest_finite() ? power(f.emax + 1) : value_of(low + 1);
    const cpp_int twice = 2 * size, middle = value_of(low) + above;
    if (twice > middle || (twice == middle && low % 2 == 1)) ++low;
  }
  return static_cast<std::uint32_t>(low | (value < 0 && low != 0 ? f.sign_mask() : 0));
}

std::uint32_t exact_step(const Unit& unit, Accumulator d, const Halves& a, const Halves& b,
                         std::uint32_t c) {
  const Format out = format_of(d);
  std::vector<cpp_int> addends;
  int largest = d == kHalf ? unit.floor16 : unit.floor32;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Unpacked x = unpack(kBinary16, a[i]), y = unpack(kBinary16, b[i]);
    if (x.significand == 0 || y.significand == 0) continue;
    addends.push_back(in_units({Kind::finite, x.negative != y.negative,
                                x.significand * y.significand, x.exponent + y.exponent}));
    largest = std::max(largest, exponent_of(kBinary16, a[i]) + exponent_of(kBinary16, b[i]));
  }
  if ((c & out.magnitude_mask()) != 0) {
    addends.push_back(in_units(unpack(out, c)));
    largest = std::max(largest, exponent_of(out, c));
  }
  cpp_int sum = 0;
  const cpp_int grid = addends.empty() ? cpp_int(1) : power(largest - unit.fraction_bits);
  for (const cpp_int& addend : addends) sum += addend / grid;  // toward zero
  return rounded(out, sum * grid, d == kHalf);
}

/// Operands of many kinds of exponents, finite.
class Operands {
 public:
  explicit Operands(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t word() { return random_word(seed_, index_++); }
  std::uint16_t half(std::uint32_t first, std::uint32_t count) {
    const std::uint32_t w = word();
    return static_cast<std::uint16_t>((w & 0x83FF) | ((first + (w >> 16) % count) << 10));
  }
  Halves halves(int n, std::uint32_t first, std::uint32_t count) {
    Halves out;
    for (int i = 0; i < n; ++i) out.push_back(half(first, count));
    return out;
  }

 private:
  std::uint64_t seed_, index_ = 0;
};

TEST_CASE("known answers", "[tensor_core]") {
  const Unit units[] = {kVolta, kAmpere, kHopper};
  for (const KnownAnswer& known : kKnownAnswers) {
    const Halves a = parsed(known.a), b = parsed(known.b);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(known.name, i);
      CHECK(both(units[i], kWide, a, b, known.c) == known.results[i].wide);
      CHECK(both(units[i], kHalf, a, b, to_half(known.c)) == known.results[i].half);
    }
  }
}

TEST_CASE("a step is the sum of exact integers on its grid", "[tensor_core]") {
  Operands random(2026);
  for (int i = 0; i < 6000; ++i) {
    const Unit& unit = kCards[i % 3].unit;
    const std::uint32_t first = random.word() % 20, count = 1 + random.word() % (31 - first);
    const Halves a = random.halves(unit.length, first, count);
    const Halves b = random.halves(unit.length, first, count);
    const std::uint16_t half = random.half(0, 31);
    const std::uint32_t w = random.word();
    const std::uint32_t wide =
        i % 4 == 0 ? w & 0xBFFFFFFF : (w & 0x807FFFFF) | (100 + w % 45) << 23;
    CAPTURE(i, first, count);
    REQUIRE(whole_chain(unit, kWide, a, b, wide) == exact_step(unit, kWide, a, b, wide));
    REQUIRE(whole_chain(unit, kHalf, a, b, half) == exact_step(unit, kHalf, a, b, half));
  }
}

TEST_CASE("steps about the smallest numbers are sums of exact integers", "[tensor_core]") {
  Operands random(7);
  for (int i = 0; i < 3000; ++i) {
    const Unit& unit = kCards[i % 3].unit;
    Halves a = random.halves(unit.length, 0, 4), b = random.halves(unit.length, 0, 2);
    for (std::size_t k = 2; k < a.size(); ++k) {
      if (random.word() % 4 != 0) a[k] = 0x8000;
    }
    const std::uint16_t c = random.word() % 2 == 0 ? std::uint16_t{0} : random.half(0, 1) & 0x8003;
    CAPTURE(i);
    const std::uint32_t ours = whole_chain(unit, kHalf, a, b, c),
                        exact = exact_step(unit, kHalf, a, b, c);
    REQUIRE(ours == exact);
  }
}

TEST_CASE("special values of a step", "[tensor_core]") {
  struct Row {
    const char* name;
    Halves a, b;
    std::uint32_t c, wide, half;  ///< c of binary32
  };
  constexpr std::uint32_t kNan = 0x7FFFFFFF, kInfinity = 0x7F800000, kMinus = 0xFF800000;
  const Row rows[] = {
      {"NaN in a", {0x3C00, 0xFE01}, {0x3C00, 0x3C00}, 0, kNan, 0x7FFF},
      {"NaN in b, a zero", {0x0000}, {0x7C01}, 0, kNan, 0x7FFF},
      {"NaN in c", {0x3C00}, {0x3C00}, 0xFFC00001, kNan, 0x7FFF},
      {"NaN and infinity", {0x7C00, 0x7E00}, {0x3C00, 0x3C00}, 0, kNan, 0x7FFF},
      {"infinity", {0x7C00}, {0x0001}, 0, kInfinity, 0x7C00},
      {"infinity times minus one", {0x7C00}, {0xBC00}, 0x3F800000, kMinus, 0xFC00},
      {"infinity by infinity", {0xFC00}, {0xFC00}, 0, kInfinity, 0x7C00},
      {"infinity by zero", {0x7C00}, {0x8000}, 0, kNan, 0x7FFF},
      {"zero by infinity", {0x0000}, {0xFC00}, 0, kNan, 0x7FFF},
      {"infinities that agree", {0x7C00, 0x7C00}, {0x3C00, 0x4000}, kInfinity, kInfinity, 0x7C00},
      {"opposed products", {0x7C00, 0x7C00}, {0x3C00, 0xBC00}, 0, kNan, 0x7FFF},
      {"opposed to c", {0x7C00}, {0x3C00}, kMinus, kNan, 0x7FFF},
      {"infinity in c", {0x7BFF}, {0x7BFF}, kMinus, kMinus, 0xFC00},
      {"zeros", {0x0000, 0x8000}, {0x8000, 0x8000}, 0, 0, 0},
      {"negative zeros", {0x8000}, {0x3C00}, 0x80000000, 0, 0},
      {"nothing but a negative zero in c", {}, {}, 0x80000000, 0, 0},
      {"exact cancellation", {0x3C00, 0xBC00}, {0x4000, 0x4000}, 0, 0, 0},
      {"c alone, subnormal", {0x0000}, {0x7BFF}, 0x80000001, 0x80000001, 0},
      {"smallest product", {0x0001}, {0x8001}, 0, 0xA7800000, 0},  // below the floor's grid
      {"negative underflow", {0x0400}, {0x8400}, 0, 0xB1800000, 0},
      {"largest products", {0x7BFF, 0x7BFF}, {0x7BFF, 0xFBFF}, 0x47800000, 0x47800000, 0x7C00},
      {"overflow of binary16", {0x7BFF}, {0x4000}, 0, 0x47FFE000, 0x7C00},
      {"negative overflow", {0xFBFF}, {0x4000}, 0, 0xC7FFE000, 0xFC00},
  };
  for (Row row : rows) {
    row.a.resize(4);
    row.b.resize(4);
    for (const Card& card : kCards) {
      CAPTURE(row.name, card.name);
      CHECK(both(card.unit, kWide, row.a, row.b, row.c) == row.wide);
      CHECK(both(card.unit, kHalf, row.a, row.b, to_half(row.c)) == row.half);
    }
  }
}

TEST_CASE("chains of steps", "[tensor_core]") {
  // 2^15 * 2 overflows binary16 in the first step; the next one has an infinity to add to.
  Halves a(16), b(16, 0x3C00);
  a[0] = 0x7800, b[0] = 0x4000;
  a[8] = 0xF800, b[8] = 0x4000;
  CHECK(both(kAmpere, kHalf, a, b, 0) == 0x7C00);
  CHECK(both(kHopper, kHalf, a, b, 0) == 0);
  CHECK(both(kAmpere, kWide, a, b, 0) == 0);
  a[9] = 0xFC00;  // an infinity of the other sign
  CHECK(both(kAmpere, kHalf, a, b, 0) == 0x7FFF);
  CHECK(both(kAmpere, kWide, a, b, 0) == 0xFF800000);

  // A step that is not full is one with zeros.
  Operands random(5);
  for (int k = 1; k < 40; ++k) {
    Halves x = random.halves(k, 8, 10), y = random.halves(k, 8, 10);
    const std::uint32_t c = random.half(10, 6);
    for (const Card& card : kCards) {
      Halves padded_x = x, padded_y = y;
      padded_x.resize(48, 0x8000);
      padded_y.resize(48, 0x7BFF);
      CAPTURE(k, card.name);
      CHECK(both(card.unit, kHalf, x, y, c) == both(card.unit, kHalf, padded_x, padded_y, c));
    }
  }
}

TEST_CASE("architectures by name", "[tensor_core]") {
  CHECK(find_architecture("hopper")->unit == kHopper);
  CHECK(find_architecture("ada")->unit == kAmpere);
  CHECK(find_architecture("Hopper") == nullptr);
  const auto unit = [](std::string_view name, Format a, Format b, Accumulator d) {
    return unit_of(*find_architecture(name), a, b, d);
  };
  CHECK(unit("volta", kBinary16, kBinary16, kHalf) == kVolta);
  CHECK_FALSE(unit("turing", kBfloat16, kBfloat16, kWide));
  CHECK(unit("ampere", kBfloat16, kBfloat16, kWide) == kAmpere);
  CHECK_FALSE(unit("ampere", kBfloat16, kBfloat16, kHalf));
  CHECK_FALSE(unit("ampere", kFloat8E4M3, kFloat8E4M3, kWide));
  CHECK(unit("ada", kFloat8E5M2, kFloat8E4M3, kHalf) == kAdaFp8);
  CHECK(unit("hopper", kFloat8E4M3, kFloat8E4M3, kWide) == kHopperFp8);
  CHECK_FALSE(unit("hopper", kBinary16, kBfloat16, kWide));
  CHECK_FALSE(unit("hopper", kBinary32, kBinary32, kWide));
  constexpr std::uint16_t kOne[] = {0x3C00};
  static_assert(step(kHopper, kHalf, kOne, kOne, 1, 0x3C00) == 0x4000);
}

TEST_CASE("bfloat16 operands", "[tensor_core]") {
  // 2^-100 * 2^-20 + 1.5 * 1.5
  const std::uint16_t a[] = {0x0D80, 0x3FC0}, b[] = {0x3580, 0x3FC0};
  CHECK(step<kBfloat16>(kHopper, kWide, a, b, 2, 0) == 0x40100000);
  const std::uint16_t tiny[] = {0x0D80};
  CHECK(step<kBfloat16>(kHopper, kWide, tiny, b, 1, 0) == 0x03800000);
}

}  // namespace test_mma
