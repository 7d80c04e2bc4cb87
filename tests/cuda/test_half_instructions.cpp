// SPDX-License-Identifier: Apache-2.0
// The GPU kernels' short way for binary16, compiled for the host with CUDA's host conversions: bits
// and flags are the scalar code's. What the device makes of it: test_array.cpp.
#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/array/half_instructions.hpp"
#include "parallel.hpp"

namespace test_half_instructions {

using namespace halfscope;
namespace instructions = halfscope::cuda::instructions;
using Bits = std::uint16_t;

constexpr Rounding kDirections[] = {Rounding::ties_to_even, Rounding::toward_zero, Rounding::upward,
                                    Rounding::downward};
constexpr NanPolicy kPolicies[] = {NanPolicy::x86, NanPolicy::canonical, NanPolicy::cuda};

bool same(const Rounded& a, const Rounded& b) { return a.bits == b.bits && a.flags == b.flags; }

bool narrows_right(std::uint32_t bits, const Modes& modes) {
  return same(instructions::narrow(detail::bit_cast<float>(bits), modes),
              convert(kBinary16, kBinary32, bits, modes));
}

/// Every exponent, both signs, fractions that meet ties, carries and ends.
std::vector<Bits> structured() {
  std::vector<Bits> out;
  for (unsigned field = 0; field < 32; ++field) {
    for (const unsigned fraction : {0x000U, 0x001U, 0x2AAU, 0x1FEU, 0x200U, 0x3FFU}) {
      out.push_back(static_cast<Bits>(field << 10 | fraction));
      out.push_back(static_cast<Bits>(0x8000 | field << 10 | fraction));
    }
  }
  return out;
}

std::string pair_disagreement(const Modes& modes) {
  for (const Bits a : structured()) {
    for (const Bits b : structured()) {
      if (!same(instructions::add(a, b, modes), add(kBinary16, a, b, modes)) ||
          !same(instructions::multiply(a, b, modes), multiply(kBinary16, a, b, modes))) {
        return fmt::format("{:04X} {:04X}", a, b);
      }
    }
  }
  return {};
}

std::string triple_disagreement(const Modes& modes) {
  const std::vector<Bits> all = structured();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      for (std::size_t k = (i + 3 * j) % 29; k < all.size(); k += 29) {
        const Bits a = all[i], b = all[j], c = all[k];
        if (!same(instructions::fused_multiply_add(a, b, c, modes),
                  fused_multiply_add(kBinary16, a, b, c, modes))) {
          return fmt::format("{:04X} {:04X} {:04X}", a, b, c);
        }
      }
    }
  }
  return {};
}

TEST_CASE("conversion by instruction: bits and flags, sampled and about 2^-14", "[cuda][array]") {
  std::uint64_t wrong = 0;  // an input that differs, plus one
  for (const Rounding rounding : kDirections) {
    for (const NanPolicy nan : kPolicies) {
      const Modes modes = {.rounding = rounding, .nan = nan};
      REQUIRE(instructions::can_use_instructions(kBinary16, modes));
      for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 6121) {
        if (!narrows_right(static_cast<std::uint32_t>(bits), modes)) wrong = bits + 1;
      }
      for (std::uint32_t bits = 0x387FC000; bits < 0x38801000; ++bits) {  // where tininess turns
        if (!narrows_right(bits, modes)) wrong = std::uint64_t{bits} + 1;
        if (!narrows_right(bits | 0x80000000, modes))
          wrong = (bits | std::uint64_t{0x80000000}) + 1;
      }
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("conversion by instruction, all 2^32 inputs", "[cuda][array][.exhaustive]") {
  for (const Rounding rounding : kDirections) {
    const Modes modes = {.rounding = rounding};
    std::atomic<std::uint64_t> wrong = 0;  // an input that differs, plus one
    parallel_for(1U << 12, [&](std::uint64_t block) {
      for (std::uint64_t bits = block << 20; bits < (block + 1) << 20; ++bits) {
        if (!narrows_right(static_cast<std::uint32_t>(bits), modes)) wrong = bits + 1;
      }
    });
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("every half as binary32 by instruction", "[cuda][array]") {
  unsigned wrong = 0;  // an input that differs, plus one
  for (const NanPolicy nan : kPolicies) {
    for (unsigned code = 0; code < 0x10000; ++code) {
      const Modes modes = {.nan = nan};
      const Rounded got = instructions::widen(static_cast<Bits>(code), modes);
      if (!same(got, convert(kBinary32, kBinary16, code, modes))) wrong = code + 1;
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("sums and products by way of binary32 rounded to odd, structured pairs and triples",
          "[cuda][array]") {
  for (const Rounding rounding : kDirections) {
    const Modes modes = {.rounding = rounding};
    REQUIRE(pair_disagreement(modes) == "");
    REQUIRE(triple_disagreement(modes) == "");
  }
  const Modes nearest;
  REQUIRE(instructions::fused_multiply_add(0x39C0, 0xC3FE, 0x07FE, nearest).bits == 0xC1BF);
}

TEST_CASE("other formats and modes take the scalar way", "[cuda][array]") {
  CHECK_FALSE(instructions::can_use_instructions(kBfloat16, {}));
  for (const Modes& modes :
       {Modes{.rounding = Rounding::ties_to_away}, Modes{.rounding = Rounding::to_odd},
        Modes{.rounding = Rounding::stochastic}, Modes{.tininess = Tininess::before_rounding},
        Modes{.denormals_are_zero = true}, Modes{.flush_to_zero = true}, Modes{.saturate = true}}) {
    CHECK_FALSE(instructions::can_use_instructions(kBinary16, modes));
  }
}

}  // namespace test_half_instructions
