// SPDX-License-Identifier: Apache-2.0
// The loops over a block, compiled once for each set of vector instructions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/reduction/block_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "halfscope/reduction/block.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::reduction::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, kPad>;
using Words = hn::RebindToUnsigned<Floats>;
using Doubles = hn::CappedTag<double, kPad / 2>;
using HalfFloats = hn::Rebind<float, Doubles>;
using Mask = hn::Mask<Floats>;

HWY_INLINE hn::Vec<Floats> load(const float* p) { return hn::LoadU(Floats(), p); }

/// Tests for finite numbers as integers: the exponent field is not all ones.
HWY_INLINE Mask is_finite(hn::Vec<Floats> x) {
  const Words d;
  const auto infinity = hn::Set(d, 0x7F800000u);
  return hn::RebindMask(Floats(), hn::Ne(hn::And(hn::BitCast(d, x), infinity), infinity));
}

/// Adds 1 to counts[i] if mask[i] is set.
HWY_INLINE void increment(Mask mask, std::uint32_t* counts) {
  const Words d;
  const auto ones = hn::VecFromMask(d, hn::RebindMask(d, mask));  // -1 each
  hn::StoreU(hn::Sub(hn::LoadU(d, counts), ones), d, counts);
}

/// add_exactly() of addition.hpp, as vectors.
HWY_INLINE void add_exactly(const float* x, double* high, double* low) {
  const Doubles d;
  const auto addend = hn::PromoteTo(d, hn::LoadU(HalfFloats(), x));
  const auto before = hn::LoadU(d, high);
  const auto sum = hn::Add(before, addend), part = hn::Sub(sum, before);
  const auto rest = hn::Add(hn::Sub(before, hn::Sub(sum, part)), hn::Sub(addend, part));
  hn::StoreU(sum, d, high);
  hn::StoreU(hn::Add(hn::LoadU(d, low), rest), d, low);
}

void take(const float* given, const float* taken, std::size_t n, BlockState& state) {
  for (std::size_t i = 0; i < n; i += hn::MaxLanes(Doubles())) {
    add_exactly(taken + i, state.high.data() + i, state.low.data() + i);
  }
  const auto zero = hn::Zero(Floats());
  for (std::size_t i = 0; i < n; i += hn::MaxLanes(Floats())) {
    const auto x = load(given + i);
    increment(hn::Not(is_finite(x)), state.nonfinite.data() + i);
    const Mask flushed = hn::And(hn::Ne(x, zero), hn::Eq(load(taken + i), zero));
    increment(flushed, state.flushed.data() + i);
  }
}

void add(const float* a, const float* b, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += hn::MaxLanes(Floats())) {
    hn::StoreU(hn::Add(load(a + i), load(b + i)), Floats(), out + i);
  }
}

/// is_lost() of addition.hpp, as vectors.
void count(const float* first, const float* second, const float* sums, std::size_t n,
           BlockState& state) {
  const auto zero = hn::Zero(Floats());
  for (std::size_t i = 0; i < n; i += hn::MaxLanes(Floats())) {
    const auto a = load(first + i), b = load(second + i), out = load(sums + i);
    const Mask same = hn::Or(hn::Eq(out, a), hn::Eq(out, b));
    const Mask nonzero = hn::And(hn::Ne(a, zero), hn::Ne(b, zero));
    increment(hn::And(hn::And(same, nonzero), is_finite(out)), state.lost.data() + i);
  }
}

using Double = hn::Vec<Doubles>;

/// False if the result or an addend is not finite; such sums count as sums of zeros.
HWY_INLINE hn::Mask<Doubles> measured(hn::Vec<HalfFloats> result, const std::uint32_t* nonfinite) {
  const hn::RebindToUnsigned<HalfFloats> d;
  const auto infinity = hn::Set(d, 0x7F800000u), zero = hn::Zero(d);
  const auto finite = hn::Ne(hn::And(hn::BitCast(d, result), infinity), infinity);
  const auto counted = hn::And(finite, hn::Eq(hn::LoadU(d, nonfinite), zero));
  const auto word = hn::VecFromMask(d, counted);
  return hn::Ne(hn::PromoteTo(Doubles(), hn::BitCast(hn::RebindToSigned<HalfFloats>(), word)),
                hn::Zero(Doubles()));
}

/// measure() of error.hpp with the same operations.
struct ErrorVectors {
  static constexpr std::size_t kCount = 4;
  Double values[kCount];

  HWY_INLINE static ErrorVectors of(Double result, Double high, Double low, const UlpRule& rule) {
    const Doubles d;
    const hn::RebindToUnsigned<Doubles> words;
    const Double error = hn::Sub(hn::Sub(result, high), low), exact = hn::Add(high, low);
    const Double larger = hn::Max(hn::Abs(result), hn::Abs(exact));
    const auto field = hn::And(hn::BitCast(words, larger), hn::Set(words, 0x7FF0000000000000u));
    const Double binade = hn::Max(hn::BitCast(d, field), hn::Set(d, rule.smallest_normal));
    const Double ulps = hn::Mul(hn::Div(error, binade), hn::Set(d, rule.steps));
    return {{hn::Mul(error, error), hn::Mul(exact, exact), ulps, hn::Mul(ulps, ulps)}};
  }
};

/// Sums in eight lanes: element i in lane i modulo 8, for any vector length.
struct EightLanes {
  static constexpr std::size_t kLanes = 8, kParts = kLanes / hn::MaxLanes(Doubles());
  Double parts[kParts];

  HWY_INLINE double sum() const {
    double x[kLanes];
    for (std::size_t k = 0; k < kParts; ++k) {
      hn::StoreU(parts[k], Doubles(), x + k * hn::MaxLanes(Doubles()));
    }
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  }
};

Errors sum_errors(const float* results, std::size_t n, const UlpRule& rule,
                  const BlockState& state) {
  const Doubles d;
  EightLanes sums[ErrorVectors::kCount];
  for (EightLanes& sum : sums) {
    for (Double& part : sum.parts) part = hn::Zero(d);
  }
  for (std::size_t first = 0; first < n; first += EightLanes::kLanes) {
    for (std::size_t k = 0; k < EightLanes::kParts; ++k) {
      const std::size_t i = first + k * hn::MaxLanes(d);
      const auto x = hn::LoadU(HalfFloats(), results + i);
      const auto mask = measured(x, state.nonfinite.data() + i);
      const auto errors =
          ErrorVectors::of(hn::IfThenElseZero(mask, hn::PromoteTo(d, x)),
                           hn::IfThenElseZero(mask, hn::LoadU(d, state.high.data() + i)),
                           hn::IfThenElseZero(mask, hn::LoadU(d, state.low.data() + i)), rule);
      for (std::size_t v = 0; v < ErrorVectors::kCount; ++v) {
        sums[v].parts[k] = hn::Add(sums[v].parts[k], errors.values[v]);
      }
    }
  }
  return {sums[0].sum(), sums[1].sum(), sums[2].sum(), sums[3].sum()};
}

BlockFacts finish_block(const float* results, std::size_t n, const UlpRule& rule,
                        const BlockState& state) {
  BlockFacts facts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t counted = state.nonfinite[i] == 0 ? 1u : 0u;
    facts.elements += counted;
    facts.flushed += counted * state.flushed[i];
    facts.lost += counted * state.lost[i];
    facts.overflow += counted & (std::isfinite(results[i]) ? 0u : 1u);
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
