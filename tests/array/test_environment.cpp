// SPDX-License-Identifier: Apache-2.0
// The caller's rounding direction, flushing of subnormals and flags change nothing and are not
// changed. MXCSR's traps: test_array.cpp.
#include "halfscope/array/environment.hpp"

#include <array>
#include <cfenv>

#include "catch.hpp"
#include "halfscope/table/update/update_table.hpp"
#include "inputs.hpp"

namespace test_environment {

using namespace arrays;

/// Subnormals count as zeros, as operands and as results.
void flush_subnormals([[maybe_unused]] bool flush) {
#if defined(__aarch64__)
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control = (control & ~(std::uint64_t{1} << 24)) | std::uint64_t{flush} << 24;
  asm volatile("msr fpcr, %0" ::"r"(control));
#elif defined(__x86_64__)
  constexpr unsigned kFlush = 0x8040;
  _mm_setcsr((_mm_getcsr() & ~kFlush) | (flush ? kFlush : 0u));
#endif
}

using Words = std::vector<std::uint16_t>;

struct Inputs {
  std::vector<float> values = hard_floats(kBinary16);
  Words a, b, c;

  Inputs() {
    std::mt19937 random(1);
    for (Words* words : {&a, &b, &c}) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        words->push_back(static_cast<std::uint16_t>(random()));
      }
    }
  }
  std::vector<Words> results(const Modes& modes) const {
    const ArrayOptions options = {.modes = modes, .threads = 1};
    std::vector<Words> all(3, Words(values.size()));
    const Flags flags[] = {convert(kBinary16, values, all[0], options),
                           add(kBfloat16, a, b, all[1], options),
                           fused_multiply_add(kBinary16, a, b, c, all[2], options)};
    for (const Flags& f : flags) all[0].push_back(static_cast<std::uint16_t>(mxcsr_bits(f)));
    return all;
  }
  UpdateTable updates() const {
    std::vector<float> weights(values.rbegin(), values.rend());
    return count_updates(view_of(weights), view_of(values), {.format = kBfloat16});
  }
};

TEST_CASE("the caller's direction, flushing and flags", "[array][environment]") {
  const Inputs inputs;
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    const UpdateTable table = inputs.updates();
    for (const Modes& modes : {Modes{}, Modes{.rounding = Rounding::ties_to_away}}) {
      const std::vector<Words> want = inputs.results(modes);
      for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
        std::fesetround(direction);
        std::feclearexcept(FE_ALL_EXCEPT);
        std::feraiseexcept(FE_DIVBYZERO);
        flush_subnormals(true);
        const std::vector<Words> found = inputs.results(modes);
        const int after = std::fegetround(), raised = std::fetestexcept(FE_ALL_EXCEPT);
        const UpdateTable found_table = inputs.updates();
        flush_subnormals(false);
        std::fesetround(FE_TONEAREST);
        REQUIRE(found == want);
        REQUIRE(found_table == table);
        REQUIRE(after == direction);
        REQUIRE(raised == FE_DIVBYZERO);
      }
    }
  }
}

}  // namespace test_environment
