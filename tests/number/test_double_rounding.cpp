// SPDX-License-Identifier: Apache-2.0
// The statements of docs/numerics/emulator.md on rounding twice: where an intermediate format is
// harmless, and the examples where it is not.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"

namespace test_double_rounding {

using namespace halfscope;

using Binary = Rounded (*)(Format, std::uint64_t, std::uint64_t, const Modes&);

struct Operation {
  const char* name;
  Binary apply;
};

Rounded root_of_first(Format f, std::uint64_t a, std::uint64_t, const Modes& modes) {
  return square_root(f, a, modes);
}

constexpr Operation kOperations[] = {
    {"add", add},       {"subtract", subtract},         {"multiply", multiply},
    {"divide", divide}, {"square root", root_of_first},
};

std::uint64_t widened(Format f, std::uint64_t bits) { return convert(kBinary32, f, bits).bits; }

/// The operation in binary32, then rounded to f: both to nearest unless `first` says otherwise.
std::uint64_t by_way_of_binary32(Binary apply, Format f, std::uint64_t a, std::uint64_t b,
                                 const Modes& first = {}) {
  return convert(f, kBinary32, apply(kBinary32, widened(f, a), widened(f, b), first).bits).bits;
}

/// Finite binary16 encodings of both signs: every exponent, fractions next to its ends and mixed.
std::vector<std::uint64_t> structured() {
  std::vector<std::uint64_t> out;
  for (std::uint64_t exponent = 0; exponent < 31; ++exponent) {
    for (const std::uint64_t fraction :
         {0, 1, 2, 3, 0x155, 0x1FF, 0x200, 0x201, 0x2AA, 0x3FD, 0x3FE, 0x3FF}) {
      out.push_back(exponent << 10 | fraction);
      out.push_back(0x8000 | exponent << 10 | fraction);
    }
  }
  return out;
}

TEST_CASE("binary16 by way of binary32 is harmless for five operations", "[number][rounding]") {
  const std::vector<std::uint64_t> inputs = structured();
  std::string bad;
  for (const Operation& operation : kOperations) {
    for (const std::uint64_t a : inputs) {
      for (const std::uint64_t b : inputs) {
        const std::uint64_t once = operation.apply(kBinary16, a, b, {}).bits;
        if (once == by_way_of_binary32(operation.apply, kBinary16, a, b)) continue;
        bad = fmt::format("{} {:#x} {:#x}", operation.name, a, b);
      }
    }
  }
  REQUIRE(bad == "");
}

TEST_CASE("fma by way of binary32 is not, unless binary32 rounds to odd", "[number][rounding]") {
  const auto fma_by_way = [](std::uint64_t a, std::uint64_t b, std::uint64_t c, const Modes& m) {
    const Rounded wide = fused_multiply_add(kBinary32, widened(kBinary16, a), widened(kBinary16, b),
                                            widened(kBinary16, c), m);
    return convert(kBinary16, kBinary32, wide.bits).bits;
  };
  CHECK(fused_multiply_add(kBinary16, 0x39C0, 0xC3FE, 0x07FE).bits == 0xC1BF);
  CHECK(fma_by_way(0x39C0, 0xC3FE, 0x07FE, {}) == 0xC1BE);
  const std::vector<std::uint64_t> inputs = structured();
  std::string bad;
  int nearest_is_wrong = 0;
  for (std::size_t i = 0; i < inputs.size(); i += 3) {
    for (std::size_t j = 0; j < inputs.size(); j += 5) {
      for (std::size_t k = 0; k < inputs.size(); k += 7) {
        const std::uint64_t once =
            fused_multiply_add(kBinary16, inputs[i], inputs[j], inputs[k]).bits;
        const std::uint64_t odd =
            fma_by_way(inputs[i], inputs[j], inputs[k], {.rounding = Rounding::to_odd});
        if (once != odd) bad = fmt::format("{:#x} {:#x} {:#x}", inputs[i], inputs[j], inputs[k]);
        if (once != fma_by_way(inputs[i], inputs[j], inputs[k], {})) ++nearest_is_wrong;
      }
    }
  }
  REQUIRE(bad == "");
  CHECK(nearest_is_wrong > 0);
}

TEST_CASE("TF32 shares binary32's exponents, and a product goes wrong", "[number][rounding]") {
  CHECK(multiply(kTf32, 0x0E84A, 0x0EB76).bits == 1);
  CHECK(by_way_of_binary32(multiply, kTf32, 0x0E84A, 0x0EB76) == 0);
}

TEST_CASE("bfloat16 has bits to spare", "[number][rounding]") {
  // All pairs of significands at every exponent where the result is subnormal.
  std::string bad;
  const auto encoding = [](int e, std::uint64_t fraction) {
    return (static_cast<std::uint64_t>(e + 127) << 7) + fraction;
  };
  for (int e = -137; e <= -125; ++e) {
    for (std::uint64_t i = 0; i < 128; ++i) {
      for (std::uint64_t j = 0; j < 128; ++j) {
        const std::uint64_t x = encoding(-60, i), y = encoding(e + 60, j), z = encoding(-60 - e, j);
        const bool product =
            multiply(kBfloat16, x, y).bits == by_way_of_binary32(multiply, kBfloat16, x, y);
        const bool quotient =
            divide(kBfloat16, x, z).bits == by_way_of_binary32(divide, kBfloat16, x, z);
        if (!product || !quotient) bad = fmt::format("{:#x} {:#x}", x, product ? z : y);
      }
    }
  }
  REQUIRE(bad == "");
}

}  // namespace test_double_rounding
