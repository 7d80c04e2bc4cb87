// SPDX-License-Identifier: Apache-2.0
// The loops over a block, compiled once for each set of vector instructions. They are plain loops
// without branches, which the compiler makes vectors of.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/reduction/block_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>

#include "halfscope/reduction/addition.hpp"
#include "halfscope/reduction/block.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::reduction::HWY_NAMESPACE {

void take(const float* given, const float* taken, std::size_t n, BlockState& state) {
  for (std::size_t i = 0; i < n; ++i) {
    add_exactly(state.high[i], state.low[i], static_cast<double>(taken[i]));
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t finite = is_finite(given[i]);
    state.nonfinite[i] |= finite ^ 1u;
    state.rounded[i] += finite & (given[i] != taken[i] ? 1u : 0u);
  }
}

void add(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT out,
         std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void count(const float* a, const float* b, const float* out, std::size_t n, BlockState& state) {
  for (std::size_t i = 0; i < n; ++i) {
    state.lost[i] += is_lost(a[i], b[i], out[i]);
    state.overflow[i] += overflows(a[i], b[i], out[i]);
  }
}

/// A number for each lane.
struct Lanes {
  static constexpr std::size_t kCount = 8;
  std::array<double, kCount> values{};

  double sum() const {
    return ((values[0] + values[1]) + (values[2] + values[3])) +
           ((values[4] + values[5]) + (values[6] + values[7]));
  }
};

Errors sum_errors(const float* results, std::size_t n, const UlpRule& rule,
                  const BlockState& state) {
  Lanes squared_error, squared_exact, ulp, squared_ulp, outward;
  for (std::size_t first = 0; first < n; first += Lanes::kCount) {
    for (std::size_t k = 0; k < Lanes::kCount; ++k) {
      const std::size_t i = first + k;
      // A result that is not finite, and a sum with such an addend, count as a sum of zeros.
      const bool measured = (is_finite(results[i]) & (state.nonfinite[i] ^ 1u)) != 0;
      const Errors e = measure(measured ? static_cast<double>(results[i]) : 0.0,
                               measured ? state.high[i] : 0.0, measured ? state.low[i] : 0.0, rule);
      squared_error.values[k] += e.squared_error;
      squared_exact.values[k] += e.squared_exact;
      ulp.values[k] += e.ulp;
      squared_ulp.values[k] += e.squared_ulp;
      outward.values[k] += e.outward_ulp;
    }
  }
  return {squared_error.sum(), squared_exact.sum(), ulp.sum(), squared_ulp.sum(), outward.sum()};
}

BlockFacts finish_block(const float* results, std::size_t n, const UlpRule& rule,
                        const BlockState& state) {
  BlockFacts facts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t counted = state.nonfinite[i] ^ 1u;
    facts.elements += counted;
    facts.rounded += counted * state.rounded[i];
    facts.lost += counted * state.lost[i];
    facts.overflow += counted & (is_finite(results[i]) ^ 1u);
    facts.overflow_additions += counted * state.overflow[i];
  }
  facts.errors = sum_errors(results, n, rule, state);
  return facts;
}

}  // namespace halfscope::reduction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope::reduction {

HWY_EXPORT(take);
HWY_EXPORT(add);
HWY_EXPORT(count);
HWY_EXPORT(finish_block);

void take_addends(const float* given, const float* taken, std::size_t n, BlockState& state) {
  HWY_DYNAMIC_DISPATCH(take)(given, taken, n, state);
}
void add_values(const float* a, const float* b, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(add)(a, b, out, n);
}
void count_additions(const float* a, const float* b, const float* out, std::size_t n,
                     BlockState& state) {
  HWY_DYNAMIC_DISPATCH(count)(a, b, out, n, state);
}
BlockFacts finish(const float* results, std::size_t n, const UlpRule& rule,
                  const BlockState& state) {
  return HWY_DYNAMIC_DISPATCH(finish_block)(results, n, rule, state);
}

}  // namespace halfscope::reduction
#endif
