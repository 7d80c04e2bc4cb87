// SPDX-License-Identifier: Apache-2.0
// What a step shows to an observer, against the chain of steps, and its parts against each other.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/tensor_core/scaled_mma.hpp"

namespace test_trace {

using namespace halfscope;
using namespace halfscope::tensor_core;

constexpr std::uint64_t kSeed = 52;

/// Random encodings: any, or about one exponent, so that terms align differently.
class Encodings {
 public:
  std::uint32_t any(int bits) { return random_word(kSeed, index_++) & ((1U << bits) - 1); }
  std::uint32_t next(Format f) {
    const std::uint32_t all = any(f.width == 32 ? 31 : f.width) * (f.width == 32 ? 2 : 1);
    if (any(4) == 0) return all;  // may be NaN or infinite
    const auto one = static_cast<std::uint32_t>(f.emax) << f.fraction_bits();
    const auto spread = static_cast<std::uint32_t>(f.fraction_mask());
    return (one + (all & (spread * 4)) + (all & spread)) %
               static_cast<std::uint32_t>(f.infinity()) |
           (any(1) << (f.width - 1));
  }
  std::vector<std::uint16_t> list(Format f, int count) {
    std::vector<std::uint16_t> out;
    for (int i = 0; i < count; ++i) out.push_back(static_cast<std::uint16_t>(next(f)));
    return out;
  }
  std::vector<std::uint8_t> scales(int count) {
    std::vector<std::uint8_t> out;
    for (int i = 0; i < count; ++i) {
      out.push_back(static_cast<std::uint8_t>(any(4) == 0 ? any(8) : 0x60 + any(5)));
    }
    return out;
  }

 private:
  std::uint64_t index_ = 0;
};

double value_of(const tensor_core::detail::Term& term) {
  const double size = std::ldexp(static_cast<double>(term.significand), term.last);
  return term.negative ? -size : size;
}

/// The parts of a step that an observer has seen.
struct Parts {
  std::vector<std::pair<tensor_core::detail::Term, std::int64_t>> terms = {};
  int grid = 0;
};

/// Returns what is wrong with the parts of a step; empty if nothing is.
std::string fault_of(const Parts& step, const Unit& unit, Accumulator d, std::uint32_t result) {
  std::int64_t sum = 0;
  for (const auto& [term, units] : step.terms) {
    sum += units;
    const double exact = value_of(term);
    const double kept = std::ldexp(static_cast<double>(units), step.grid);
    if (std::abs(kept) > std::abs(exact)) return "a term grew";
    if (std::abs(exact - kept) >= std::ldexp(1.0, step.grid)) return "a term lost a whole unit";
  }
  const bool finite = !step.terms.empty();
  return !finite || tensor_core::detail::rounded(unit, d, sum, step.grid) == result
             ? ""
             : "the result is not the sum of the terms";
}

/// Traces a chain step by step. Returns its result, and a step's fault in `fault`.
std::uint32_t traced(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                     const ScaledOperand& b, int count, std::uint32_t c, std::string& fault) {
  for (int first = 0; first < count; first += unit.unit.length) {
    const int scale = unit.block == 0 ? 0 : first / unit.block;
    Parts parts;
    const auto see = [&](const tensor_core::detail::Term& term, std::int64_t kept, int grid) {
      parts.terms.emplace_back(term, kept);
      parts.grid = grid;
    };
    c = scaled_step(unit, {a.format, a.elements + first, a.scales + scale},
                    {b.format, b.elements + first, b.scales + scale},
                    std::min(unit.unit.length, count - first), c, d, see);
    if (fault.empty()) fault = fault_of(parts, unit.unit, d, c);
  }
  return c;
}

constexpr int kSums = 3000;
constexpr Format kAll[] = {kBinary16,   kBfloat16,   kFloat8E4M3, kFloat8E5M2,
                           kFloat6E3M2, kFloat6E2M3, kFloat4E2M1};

TEST_CASE("a traced chain equals the chain", "[oracle]") {
  Encodings random;
  std::string fault;
  int units = 0;
  for (const Architecture& arch : kArchitectures) {
    for (const Format fa : kAll) {
      for (const Format fb : kAll) {
        for (const Accumulator d : {Accumulator::binary16, Accumulator::binary32}) {
          const auto unit = unit_of(arch, fa, fb, d);
          const Chain chain = chain_of(fa, fb);
          if (!unit || chain == nullptr) continue;
          ++units;
          for (int i = 0; i < kSums && fault.empty(); ++i) {
            const int count = 1 + static_cast<int>(random.any(6));
            const auto a = random.list(fa, count), b = random.list(fb, count);
            const std::uint32_t c = random.next(format_of(d));
            const std::uint32_t wanted = chain(*unit, d, a.data(), b.data(), count, c);
            const std::uint32_t found = traced({.unit = *unit}, d, {fa, a.data(), nullptr},
                                               {fb, b.data(), nullptr}, count, c, fault);
            if (found != wanted) fault = std::string(arch.name) + ": another result";
          }
        }
      }
    }
  }
  CHECK(units == 40);
  REQUIRE(fault.empty());
}

TEST_CASE("a traced chain of block formats equals the chain", "[oracle]") {
  Encodings random;
  std::string fault;
  for (const ScaledUnit& unit : {kBlackwellMxf8f6f4, kBlackwellMxf4, kBlackwellMxf4nvf4}) {
    for (const Format f : kAll) {
      if (f.width > 8 || (unit.group > 1 && f != kFloat4E2M1)) continue;
      for (int i = 0; i < kSums && fault.empty(); ++i) {
        const int count = 1 + static_cast<int>(random.any(7));
        const int blocks = (count + unit.block - 1) / unit.block;
        const auto a = random.list(f, count), b = random.list(f, count);
        const auto of_a = random.scales(blocks), of_b = random.scales(blocks);
        const ScaledOperand x = {f, a.data(), of_a.data()}, y = {f, b.data(), of_b.data()};
        const std::uint32_t c = random.next(kBinary32);
        const std::uint32_t found = traced(unit, Accumulator::binary32, x, y, count, c, fault);
        if (found != scaled_chain(unit, x, y, count, c)) fault = "another result";
      }
    }
  }
  REQUIRE(fault.empty());
}

}  // namespace test_trace
