// SPDX-License-Identifier: Apache-2.0
// gemm() against chain(), output by output, with every set of vector instructions.
#include "halfscope/tensor_core/gemm.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/random.hpp"
#include "tensor_core/gemm_judge.hpp"
#include "vector_target.hpp"

namespace test_gemm {

using namespace halfscope;
using namespace halfscope::tensor_core;
using halfscope::test::computed;
using halfscope::test::difference;
using halfscope::test::GemmInput;
using halfscope::test::judged;

constexpr Accumulator kHalf = Accumulator::binary16, kWide = Accumulator::binary32;

/// How operands are distributed.
enum class Spread { all, narrow, cancelling, ends, powers, specials, zeros, least, ties, small };
constexpr Spread kSpreads[] = {Spread::all,    Spread::narrow,   Spread::cancelling, Spread::ends,
                               Spread::powers, Spread::specials, Spread::zeros,      Spread::least,
                               Spread::ties,   Spread::small};

class Maker {
 public:
  Maker(Spread kind, std::uint64_t seed) : spread_(kind), seed_(seed) {}

  GemmInput input(const Gemm& how, const GemmShape& shape) {
    GemmInput out{shape, {}, {}, {}};
    center_ = word();
    for (std::int64_t i = 0; i < shape.m * shape.k; ++i) out.a.push_back(element(how.a));
    for (std::int64_t i = 0; i < shape.n * shape.k; ++i) out.b.push_back(element(how.b));
    for (std::int64_t i = 0; i < shape.m * shape.n; ++i) {
      out.c.push_back(c_of(format_of(how.accumulator)));
    }
    if (spread_ == Spread::cancelling) cancel(how, out);
    return out;
  }

 private:
  std::uint32_t word() { return random_word(seed_, index_++); }

  /// Any finite encoding whose exponent field is `first` or one of the `count` after it.
  std::uint32_t finite(Format f, std::uint32_t first, std::uint32_t count) {
    const std::uint32_t w = word();
    const auto last = static_cast<std::uint32_t>(f.largest_finite() >> f.fraction_bits());
    const std::uint32_t field = std::min(first + w % count, last);
    std::uint32_t fraction = word() & static_cast<std::uint32_t>(f.fraction_mask());
    if (w >> 29 == 0) fraction = 0;  // ends of binades are where grids change
    if (w >> 29 == 1) fraction = static_cast<std::uint32_t>(f.fraction_mask());
    const std::uint32_t magnitude = std::min(field << f.fraction_bits() | fraction,
                                             static_cast<std::uint32_t>(f.largest_finite()));
    return magnitude | ((w >> 28 & 1) != 0 ? static_cast<std::uint32_t>(f.sign_mask()) : 0);
  }

  std::uint16_t element(Format f) {
    return static_cast<std::uint16_t>(code(f, static_cast<std::uint32_t>(f.emax) + 1));
  }

  std::uint32_t code(Format f, std::uint32_t bias) {
    const std::uint32_t w = word();
    switch (spread_) {
      case Spread::all: return finite(f, 0, 2 * bias);
      case Spread::narrow:
      case Spread::cancelling: return finite(f, bias - 3, 5);
      case Spread::ends: return finite(f, center_ % 2 == 0 ? 0 : 2 * bias - 5, 4);
      case Spread::powers:
        return finite(f, 0, 2 * bias) & ~static_cast<std::uint32_t>(f.fraction_mask());
      case Spread::specials:
        if (w % 24 == 0) return static_cast<std::uint32_t>(f.infinity() | (w >> 8 & f.sign_mask()));
        if (w % 24 == 1) return static_cast<std::uint32_t>(f.magnitude_mask());
        return w % 24 < 6 ? 0 : finite(f, 0, 2 * bias);
      case Spread::least:  // few products about the floors, and C of the last bits
        if (w % 4 != 0) return 0;
        return (w / 4 % 2 == 0 ? (2 + w / 8 % 2) << f.fraction_bits() : 1u << w / 8 % 3) |
               static_cast<std::uint32_t>(w >> 9 & f.sign_mask());
      case Spread::ties: {
        if (w % 4 != 0) return 0;
        const std::uint32_t below[] = {0, 5, 6, 12, 13};
        const std::uint32_t of = below[w / 4 % 5];
        return (std::max(bias, of + 2) - 1 - of) << f.fraction_bits();
      }
      case Spread::small:  // of bfloat16: products about 2^-100, and down to the floor
        return w % 2 == 0 ? 0 : finite(f, std::max(bias, 72u) - 70, 24);
      case Spread::zeros: break;
    }
    if (w % 8 != 0) return static_cast<std::uint32_t>(w >> 3 & f.sign_mask());
    return finite(f, 0, 2 * bias);
  }

  std::uint32_t c_of(Format f) {
    const std::uint32_t w = word();
    if (w % 8 == 0) return static_cast<std::uint32_t>(w >> 3 & f.sign_mask());
    if (spread_ == Spread::least && w % 2 == 0) return 0;
    if (spread_ == Spread::least) return w >> 3 & (static_cast<std::uint32_t>(f.sign_mask()) | 7);
    if (f == kBinary32 && spread_ == Spread::small) return w % 4 < 2 ? 0 : finite(f, 0, 40);
    if (f == kBinary32 && spread_ != Spread::ends && w % 4 != 0) return finite(f, 127 - 20, 40);
    return code(f, static_cast<std::uint32_t>(f.emax) + 1);
  }

  /// Pairs that cancel but for some, so that what the grid has cut is seen.
  void cancel(const Gemm& how, GemmInput& in) {
    const auto k = static_cast<std::size_t>(in.shape.k);
    const auto sign = static_cast<std::uint16_t>(how.a.sign_mask());
    for (std::size_t i = 0; i + 1 < k; i += 2) {
      for (std::size_t row = 0; row < in.a.size(); row += k) {
        in.a[row + i + 1] = static_cast<std::uint16_t>(in.a[row + i] ^ sign);
      }
      for (std::size_t column = 0; column < in.b.size(); column += k) {
        if (word() % 4 != 0) in.b[column + i + 1] = in.b[column + i];
      }
    }
  }

  Spread spread_;
  std::uint64_t seed_, index_ = 0;
  std::uint32_t center_ = 0;
};

/// Of rows of so many elements.
std::vector<float> transposed(const std::vector<float>& matrix, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns), height = matrix.size() / width;
  std::vector<float> out(matrix.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i % width * height + i / width] = matrix[i];
  return out;
}

struct Case {
  std::string name;
  Gemm how;
};

/// Every unit, with all elements and sums that it has.
std::vector<Case> all_units() {
  std::vector<Case> out;
  const Format formats[][2] = {{kBinary16, kBinary16},     {kBfloat16, kBfloat16},
                               {kFloat8E4M3, kFloat8E4M3}, {kFloat8E5M2, kFloat8E4M3},
                               {kFloat8E4M3, kFloat8E5M2}, {kFloat8E5M2, kFloat8E5M2}};
  for (const Architecture& row : kArchitectures) {
    for (const auto& f : formats) {
      for (const Accumulator d : {kHalf, kWide}) {
        const auto unit = unit_of(row, f[0], f[1], d);
        if (!unit) continue;
        out.push_back({std::string(row.name) + ", " + std::to_string(f[0].precision) + " and " +
                           std::to_string(f[1].precision) + " bits, " +
                           std::to_string(format_of(d).width),
                       {.unit = *unit, .accumulator = d, .a = f[0], .b = f[1], .threads = 1}});
      }
    }
  }
  return out;
}

TEST_CASE("gemm gives what chain gives, of every kind of operands", "[tensor_core]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Case& one : all_units()) {
      for (const Spread spread : kSpreads) {
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
          const std::int64_t k = seed % 2 == 0 ? one.how.unit.length : 3 * one.how.unit.length - 3;
          const GemmInput in = Maker(spread, seed).input(one.how, {9, 37, k});
          CAPTURE(target, one.name, static_cast<int>(spread), seed);
          REQUIRE(difference(one.how, in) == "");
        }
      }
    }
  }
}

TEST_CASE("gemm of all pairs of exponents and ends of binades", "[tensor_core]") {
  // Row: an exponent and a fraction of A, beside 1; column: the same of B. C is the negative of the
  // first product, cut in the grid of the second.
  std::vector<std::uint16_t> codes;
  for (std::uint32_t field = 0; field < 31; ++field) {
    for (const std::uint32_t fraction : {0u, 1u, 0x1FFu, 0x200u, 0x3FEu, 0x3FFu}) {
      codes.push_back(static_cast<std::uint16_t>(field << 10 | fraction | (fraction % 2) << 15));
    }
  }
  const auto count = static_cast<std::int64_t>(codes.size());
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Unit& unit : {kVolta, kAmpere, kHopper}) {
      for (const Accumulator d : {kHalf, kWide}) {
        GemmInput in{{count, count, 3}, {}, {}, {}};
        for (const std::uint16_t code : codes) {
          in.a.insert(in.a.end(), {code, 0x3C00, code});
          in.b.insert(in.b.end(), {code, 0x0401, 0x8003});
        }
        for (std::size_t i = 0; i < codes.size() * codes.size(); ++i) {
          in.c.push_back(d == kHalf ? std::uint32_t{codes[i % codes.size()]}
                                    : static_cast<std::uint32_t>(i * 2654435761u) & 0xBFFFFFFF);
        }
        CAPTURE(target, unit.fraction_bits, static_cast<int>(d));
        REQUIRE(difference({.unit = unit, .accumulator = d, .threads = 1}, in) == "");
      }
    }
  }
}

TEST_CASE("gemm of the largest sums, which need a 33rd bit", "[tensor_core]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const std::uint16_t sign : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
      GemmInput in{{1, 3, 16},
                   std::vector<std::uint16_t>(16, static_cast<std::uint16_t>(0x7BFF ^ sign)),
                   std::vector<std::uint16_t>(48, 0x7BFF),
                   {0x4F7FFFFF, 0xCF7FFFFF, 0x4EFFFFFF}};
      CAPTURE(target, sign);
      CHECK(difference({.unit = kHopper}, in) == "");
      if (sign == 0) CHECK(computed({.unit = kHopper}, in)[2] == 0x5183E001);
    }
  }
}

TEST_CASE("gemm by its named options and by what only chain computes", "[tensor_core]") {
  using Change = std::function<void(Unit&)>;
  const std::vector<std::pair<const char*, Change>> changes = {
      {"-0", [](Unit& u) { u.negative_zero = true; }},
      {"C normalised", [](Unit& u) { u.normalises_c = true; }},
      {"no floor", [](Unit& u) { u.floor16 = u.floor32 = kNoFloor; }},
      {"floor", [](Unit& u) { ++u.floor16; }},
      {"zero bits", [](Unit& u) { u.zero_bits32 = 7; }},
      {"zero bits, -0", [](Unit& u) { u.negative_zero = true, u.zero_bits32 = 1; }},
      {"never infinity", [](Unit& u) { u.infinite32 = false; }},
      {"one bit more", [](Unit& u) { ++u.fraction_bits; }},
      {"one bit less", [](Unit& u) { --u.fraction_bits; }},
      {"12 bits", [](Unit& u) { u.fraction_bits = 12; }},
      {"half a step", [](Unit& u) { u.length /= 2; }},
      {"other rounding",
       [](Unit& u) {
         u.round16 = Rounding::toward_zero;
         u.round32 = Rounding::ties_to_even;
       }},
      {"normalised products", [](Unit& u) { u.normalises_products = true; }},
      {"zeros align", [](Unit& u) { u.zeros_align = true; }},
      {"by way of binary32", [](Unit& u) { u.by_way_of_32 = true; }},
  };
  for (const auto& [name, change] : changes) {
    std::size_t different = 0;
    for (const Format f : {kBinary16, kBfloat16}) {
      for (const Accumulator d : {kHalf, kWide}) {
        const Gemm model = {.unit = kHopper, .accumulator = d, .a = f, .b = f, .threads = 1};
        Gemm changed = model;
        change(changed.unit);
        for (const Spread spread : kSpreads) {
          const GemmInput in = Maker(spread, 77).input(model, {40, 64, 32});
          CAPTURE(name, static_cast<int>(spread), f.precision);
          const std::vector<std::uint32_t> found = computed(changed, in);
          REQUIRE(halfscope::test::first_difference(in, found, judged(changed, in)) == "");
          different += found != computed(model, in);
        }
      }
    }
    CAPTURE(name);
    CHECK(different > 0);  // these operands would show a wrong model
  }
}

TEST_CASE("gemm of many shapes and plans", "[tensor_core]") {
  const Plan plans[] = {
      {},
      {.group = 16},
      {.group = 8},
      {.group = 5, .residue = 12},
      {.group = 16, .residue = 32},
      {.group = 16, .slice = 48},
      {.slice = 21, .merge = Merge::rounded_partials},
      {.group = 16, .residue = 64, .slice = 40, .merge = Merge::running_sum},
      {.group = 16, .slice = 64, .dropped = 5},
  };
  const GemmShape shapes[] = {{1, 1, 1},   {3, 1, 16},  {1, 5, 100},  {2, 33, 17},
                              {70, 3, 31}, {65, 64, 5}, {5, 16, 129}, {257, 34, 40}};
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Plan& plan : plans) {
      for (const GemmShape& shape : shapes) {
        if (plan.dropped > shape.k) continue;
        for (const Accumulator sums : {kHalf, kWide}) {
          for (const Accumulator d : {kHalf, kWide}) {
            const Gemm how = {.unit = shape.m % 2 == 0 ? kAmpere : kHopper,
                              .accumulator = sums,
                              .plan = plan,
                              .d = d,
                              .threads = static_cast<int>(shape.n % 3)};
            const GemmInput in = Maker(Spread::narrow, 5).input(how, shape);
            CAPTURE(target, shape.m, shape.n, shape.k, plan.group, plan.residue, plan.slice);
            REQUIRE(difference(how, in) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("gemm without products or outputs", "[tensor_core]") {
  const float x = 1;
  std::vector<float> d = {1, 65520, -0.0f};
  gemm({.unit = kHopper}, {3, 1, 0}, {&x, 0, 1}, {&x, 0, 1}, {d.data(), 1, 1});
  CHECK(d[1] == 65520);
  CHECK(std::signbit(d[2]));
  gemm({.unit = kHopper, .d = kHalf}, {3, 1, 0}, {&x, 0, 1}, {&x, 0, 1}, {d.data(), 1, 1});
  CHECK(d[0] == 1);
  CHECK(std::isinf(d[1]));
  gemm({.unit = kHopper}, {0, 1, 1}, {&x, 1, 1}, {&x, 1, 1}, {nullptr, 1, 1});
  gemm({.unit = kHopper}, {1, 0, 1}, {&x, 1, 1}, {&x, 1, 1}, {nullptr, 1, 1});
}

TEST_CASE("gemm of transposed matrices and with any number of threads", "[tensor_core]") {
  const Gemm how = {.unit = kAmpere};
  const GemmInput in = Maker(Spread::narrow, 9).input(how, {300, 90, 50});
  const std::vector<std::uint32_t> expected = judged(how, in);
  const auto [m, n, k] = in.shape;
  const std::vector<float> a = test::floats(kBinary16, in.a), b = test::floats(kBinary16, in.b);
  const std::vector<float> a_columns = transposed(a, k), b_rows = transposed(b, k);
  for (const int threads : {0, 1, 2, 3}) {
    Gemm threaded = how;
    threaded.threads = threads;
    std::vector<float> d = transposed(test::floats(kBinary32, in.c), n);
    gemm(threaded, in.shape, {a_columns.data(), 1, m}, {b_rows.data(), n, 1}, {d.data(), 1, m});
    std::vector<std::uint32_t> found;
    for (const float x : transposed(d, m)) found.push_back(std::bit_cast<std::uint32_t>(x));
    CAPTURE(threads);
    CHECK(test::first_difference(in, found, expected) == "");
  }
}

TEST_CASE("gemm under any rounding direction of the caller", "[tensor_core]") {
  for (const std::string& target : targets()) {
    const OnTarget on(target);
    for (const Accumulator d : {kHalf, kWide}) {
      const Gemm how = {.unit = kHopper, .accumulator = d, .plan = {.slice = 20}, .threads = 1};
      const GemmInput in = Maker(Spread::all, 3).input(how, {8, 40, 64});
      const std::vector<std::uint32_t> expected = judged(how, in);
      for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(direction);
        const std::vector<std::uint32_t> found = computed(how, in);
        const int after = std::fegetround();
        std::fesetround(FE_TONEAREST);
        CAPTURE(target, direction);
        CHECK(after == direction);
        CHECK(test::first_difference(in, found, expected) == "");
      }
    }
  }
}

TEST_CASE("gemm says what it cannot compute", "[tensor_core]") {
  const float x = 1;
  float d = 0;
  const auto product = [&](const Gemm& how, const GemmShape& shape) {
    gemm(how, shape, {&x, 1, 1}, {&x, 1, 1}, {&d, 1, 1});
  };
  CHECK_THROWS_WITH(
      product({.unit = kHopper}, {1, -1, 1}),
      "halfscope::tensor_core: a product of 1 x -1 x 1; expected extents of 0 or more");
  CHECK_THROWS_AS(product({.unit = kHopper, .a = kBfloat16}, {1, 1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(product({.unit = kHopper, .plan = {.group = -1}}, {1, 1, 1}),
                  std::invalid_argument);
  CHECK_THROWS_WITH(product({.unit = kHopper, .plan = {.dropped = 2}}, {1, 1, 1}),
                    "halfscope::tensor_core: Plan::dropped is 2, more than the 1 products");
}

}  // namespace test_gemm
