// SPDX-License-Identifier: Apache-2.0
// binary32 to binary16 against the processor's own instruction, NaN payloads and flags included.
#include <atomic>
#include <cstdint>

#include "catch.hpp"
#include "f16c.hpp"
#include "halfscope/number/convert.hpp"
#include "parallel.hpp"

namespace test_f16c {

#if HALFSCOPE_TEST_F16C

using namespace halfscope;

struct Direction {
  const char* name;
  Rounding mode;
  f16c::Control control;
};

constexpr Direction kDirections[] = {
    {"ties_to_even", Rounding::ties_to_even, f16c::Control::nearest},
    {"toward_zero", Rounding::toward_zero, f16c::Control::zero},
    {"upward", Rounding::upward, f16c::Control::up},
    {"downward", Rounding::downward, f16c::Control::down},
};

bool agrees(std::uint32_t bits, const Direction& direction) {
  const f16c::Converted cpu = f16c::convert(bits, direction.control);
  const Flags flags = {.invalid = cpu.invalid,
                       .overflow = cpu.overflow,
                       .underflow = cpu.underflow,
                       .inexact = cpu.inexact};
  const Rounded ours = convert(kBinary16, kBinary32, bits, {.rounding = direction.mode});
  return ours.bits == cpu.bits && ours.flags == flags;
}

bool skipped() {
  if (f16c::available()) return false;
  WARN("skipped: this processor has no F16C");
  return true;
}

/// First input of a block of 2^20 patterns whose encodings differ, plus one; 0 when none does.
template <f16c::Control control>
std::uint64_t first_wrong_in_block(std::uint64_t block, Rounding mode) {
  std::uint16_t cpu[8];
  const std::uint64_t first = block << 20;
  for (std::uint64_t bits = first; bits < first + (1U << 20); bits += 8) {
    f16c::convert_block<static_cast<int>(control)>(static_cast<std::uint32_t>(bits), cpu);
    for (std::uint64_t i = 0; i < 8; ++i) {
      if (convert(kBinary16, kBinary32, bits + i, {.rounding = mode}).bits != cpu[i])
        return bits + i + 1;
    }
  }
  return 0;
}

template <f16c::Control control>
std::uint64_t first_wrong(Rounding mode) {
  std::atomic<std::uint64_t> wrong = 0;
  parallel_for(1U << 12, [&](std::uint64_t block) {
    const std::uint64_t found = first_wrong_in_block<control>(block, mode);
    if (found != 0) wrong = found;
  });
  return wrong;
}

TEST_CASE("binary32 to binary16 is the processor's, flags included, sampled",
          "[number][convert][f16c]") {
  if (skipped()) return;
  // An odd stride visits residues of every power of two: all exponents, all low bits.
  for (const Direction& direction : kDirections) {
    CAPTURE(direction.name);
    std::uint64_t wrong = 0;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 2039) {
      if (!agrees(static_cast<std::uint32_t>(bits), direction)) wrong = bits + 1;
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("binary32 to binary16 is the processor's near every binary16 boundary",
          "[number][convert][f16c]") {
  if (skipped()) return;
  // Every binary16 magnitude and every midpoint, each with its binary32 neighbours, both signs.
  for (const Direction& direction : kDirections) {
    CAPTURE(direction.name);
    std::uint64_t wrong = 0;
    for (std::uint32_t twice = 0; twice <= 2 * 0x7C00 + 2; ++twice) {
      const double low = to_double(kBinary16, twice / 2);
      const double high = twice / 2 + 1 < 0x7C00 ? to_double(kBinary16, twice / 2 + 1) : 65536.0;
      const double middle = twice % 2 == 0 ? low : (low + high) / 2;
      const auto centre = static_cast<std::uint32_t>(from_double(kBinary32, middle).bits);
      for (std::uint32_t offset = 0; offset < 5; ++offset) {
        const std::uint32_t bits = centre + offset - 2;
        for (const std::uint32_t sign : {0U, 0x80000000U}) {
          if (!agrees(bits ^ sign, direction)) wrong = std::uint64_t{bits ^ sign} + 1;
        }
      }
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("the processor decides tininess after rounding, as the default does",
          "[number][convert][f16c]") {
  if (skipped()) return;
  std::uint32_t wrong = 0;
  int tells_apart = 0;
  for (std::uint32_t bits = 0x387FF000 - 16; bits < 0x38800000 + 16; ++bits) {
    const Rounded before =
        convert(kBinary16, kBinary32, bits, {.tininess = Tininess::before_rounding});
    const f16c::Converted cpu = f16c::convert(bits, f16c::Control::nearest);
    if (before.flags.underflow != cpu.underflow) ++tells_apart;
    if (!agrees(bits, kDirections[0])) wrong = bits;
  }
  CHECK(tells_apart == 4096);  // the positive half of the 8,192
  REQUIRE(wrong == 0);
}

TEST_CASE("all 2^32 binary32 inputs to binary16, four directions, against the processor",
          "[number][convert][f16c][.exhaustive]") {
  if (skipped()) return;
  CHECK(first_wrong<f16c::Control::nearest>(Rounding::ties_to_even) == 0);
  CHECK(first_wrong<f16c::Control::zero>(Rounding::toward_zero) == 0);
  CHECK(first_wrong<f16c::Control::up>(Rounding::upward) == 0);
  CHECK(first_wrong<f16c::Control::down>(Rounding::downward) == 0);
}

TEST_CASE("over all of binary32 the tininess rules differ on 8,192 inputs",
          "[number][convert][.exhaustive]") {
  std::atomic<std::uint64_t> separated = 0;
  std::atomic<std::uint64_t> different_bits = 0;
  parallel_for(1U << 12, [&](std::uint64_t block) {
    std::uint64_t here = 0;
    for (std::uint64_t bits = block << 20; bits < (block + 1) << 20; ++bits) {
      const Rounded after = convert(kBinary16, kBinary32, bits);
      const Rounded before =
          convert(kBinary16, kBinary32, bits, {.tininess = Tininess::before_rounding});
      here += after.flags.underflow != before.flags.underflow ? 1 : 0;
      if (after.bits != before.bits) ++different_bits;
    }
    separated += here;
  });
  CHECK(separated == 8192);
  CHECK(different_bits == 0);
}

#endif  // HALFSCOPE_TEST_F16C

}  // namespace test_f16c
