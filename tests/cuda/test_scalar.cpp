// SPDX-License-Identifier: Apache-2.0
// The scalar headers in nvcc: every operation gives the bits and flags that g++'s copy gives, in
// nvcc's host code everywhere, in its device code where there is a device. tests/number judges
// g++'s.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/call.hpp"
#include "cuda/skip.hpp"
#include "halfscope/number/format.hpp"

namespace test_scalar {

using halfscope::Format;
using halfscope::kFormats;
using twin::Call;
using twin::Operation;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): mixed inputs, the same in every run.
struct Mixed {
  std::uint64_t state = 0;
  std::uint64_t operator()() {
    state += 0x9E3779B97F4A7C15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
};

twin::FormatRow row_of(const Format& f) {
  return {f.precision, f.emax, f.width, static_cast<int>(f.specials)};
}

/// An encoding: any, one of the ends, a subnormal, or a neighbour of another operand.
std::uint64_t operand(const Format& f, std::uint64_t beside, Mixed& mixed) {
  const std::uint64_t any = mixed(), how = mixed();
  const std::uint64_t sign = (how & 16) != 0 ? f.sign_mask() : 0;
  const std::uint64_t ends[] = {0,
                                1,
                                f.fraction_mask(),
                                f.fraction_mask() + 1,
                                f.largest_finite(),
                                f.infinity(),
                                f.quiet_nan(),
                                f.magnitude_mask()};
  switch (how & 7) {
    case 0: return sign | ends[any % std::size(ends)];
    case 1: return sign | (any & f.fraction_mask());
    case 2:
    case 3: return (beside + any % 5 - 2) & (f.sign_mask() | f.magnitude_mask());
    default: return any & (f.sign_mask() | f.magnitude_mask());
  }
}

Call make_call(Operation operation, const Format& f, const Format& other, Mixed& mixed) {
  Call c{};
  c.operation = operation;
  c.format = row_of(f);
  c.other = row_of(other);
  c.a = operand(f, 0, mixed);
  c.b = operand(f, c.a, mixed);
  c.c = operand(f, c.b ^ f.sign_mask(), mixed);
  if (operation == Operation::from_integer) c.b = mixed() >> mixed() % 64;
  if (operation == Operation::scale_b) c.c = mixed() % 600 - 300;
  const std::uint64_t how = mixed();
  c.variant = static_cast<int>(how & 7);
  c.rounding = static_cast<int>((how >> 3) % 7);
  c.tininess = static_cast<int>(how >> 8 & 1);
  c.nan = static_cast<int>((how >> 9) % 3);
  c.denormals_are_zero = (how >> 12 & 3) == 0;
  c.flush_to_zero = (how >> 14 & 3) == 0;
  c.saturate = (how >> 16 & 3) == 0;
  c.random_bits = 1 + static_cast<int>((how >> 18) % 32);
  c.random = static_cast<std::uint32_t>(mixed() >> (64 - c.random_bits));
  return c;
}

std::vector<Call> calls() {
  std::vector<Call> out;
  Mixed mixed;
  for (int operation = 0; operation < static_cast<int>(Operation::count); ++operation) {
    for (const auto& from : kFormats) {
      const auto kind = static_cast<Operation>(operation);
      if (from.format.precision > 24 && kind != Operation::convert) continue;  // a storage format
      for (const auto& to : kFormats) {
        for (int i = 0; i < 100; ++i) out.push_back(make_call(kind, from.format, to.format, mixed));
      }
    }
  }
  return out;
}

/// Empty, or the first call whose outcomes differ.
std::string disagreement(const std::vector<Call>& in, const std::vector<twin::Outcome>& got,
                         const std::vector<twin::Outcome>& want) {
  if (got.size() != in.size() || want.size() != in.size()) return "lengths differ";
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (got[i] == want[i]) continue;
    return fmt::format(
        "operation {} precision {} width {} of {:X} {:X} {:X} variant {} rounding {}: "
        "{:X} {:02X}, g++ {:X} {:02X}",
        static_cast<int>(in[i].operation), in[i].format.precision, in[i].format.width, in[i].a,
        in[i].b, in[i].c, in[i].variant, in[i].rounding, got[i].bits, got[i].flags, want[i].bits,
        want[i].flags);
  }
  return {};
}

TEST_CASE("nvcc's host code is g++'s, every scalar operation", "[cuda][number]") {
  const std::vector<Call> in = calls();
  REQUIRE(disagreement(in, twin::by_nvcc_on_host(in), twin::by_gcc(in)) == "");
}

TEST_CASE("device code is g++'s, every scalar operation", "[cuda][number][gpu]") {
  if (skipped()) return;
  const std::vector<Call> in = calls();
  REQUIRE(disagreement(in, twin::on_device(in), twin::by_gcc(in)) == "");
}

}  // namespace test_scalar
