// SPDX-License-Identifier: Apache-2.0
// The loop over a block, with run-time dispatch to the widest vectors. Each operation is IEEE
// 754's, so that the results do not depend on the vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/optimizer/step_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "halfscope/optimizer/step_block.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::optimizer::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V fused(D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(a, b, c);
#else  // MulAdd would round twice
  using T = hn::TFromD<D>;
  HWY_ALIGN T x[HWY_MAX_BYTES / sizeof(T)], y[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T z[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

template <typename T, typename Function>
HWY_INLINE void for_each_vector(const Instruction& of, StepBlock<T>& block,
                                const Function& function) {
  const hn::ScalableTag<T> d;
  const T *const a = block.of(of.a), *const b = block.of(of.b), *const c = block.of(of.c);
  T* const to = block.of(of.to);
  for (std::size_t i = 0; i < kStepBlock; i += hn::Lanes(d)) {
    hn::Store(function(d, hn::Load(d, a + i), hn::Load(d, b + i), hn::Load(d, c + i)), d, to + i);
  }
}

template <typename T>
HWY_INLINE void compute_all(const Instruction& of, bool fma, StepBlock<T>& block) {
  const auto apply = [&](const auto& function) { for_each_vector(of, block, function); };
  switch (of.operation) {
    case Operation::copy: return apply([](auto, auto a, auto, auto) HWY_ATTR { return a; });
    case Operation::add:
      return apply([](auto, auto a, auto b, auto) HWY_ATTR { return hn::Add(a, b); });
    case Operation::subtract:
      return apply([](auto, auto a, auto b, auto) HWY_ATTR { return hn::Sub(a, b); });
    case Operation::multiply:
      return apply([](auto, auto a, auto b, auto) HWY_ATTR { return hn::Mul(a, b); });
    case Operation::divide:
      return apply([](auto, auto a, auto b, auto) HWY_ATTR { return hn::Div(a, b); });
    case Operation::contracted:
    case Operation::fma:
      if (fma)
        return apply([](auto d, auto a, auto b, auto c) HWY_ATTR { return fused(d, a, b, c); });
      return apply([](auto, auto a, auto b, auto c) HWY_ATTR { return hn::Add(hn::Mul(a, b), c); });
    case Operation::minus_fma:
      if (fma) {
        return apply([](auto d, auto a, auto b, auto c)
                         HWY_ATTR { return fused(d, hn::Neg(a), b, c); });
      }
      return apply([](auto, auto a, auto b, auto c) HWY_ATTR { return hn::Sub(c, hn::Mul(a, b)); });
    case Operation::root:
      return apply([](auto, auto a, auto, auto) HWY_ATTR { return hn::Sqrt(a); });
    case Operation::maximum:  // NaN if either operand is
      return apply([](auto, auto a, auto b, auto) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
      });
  }
}

void compute_floats(const Instruction& instruction, bool fma, StepBlock<float>& block) {
  compute_all(instruction, fma, block);
}

void compute_doubles(const Instruction& instruction, bool fma, StepBlock<double>& block) {
  compute_all(instruction, fma, block);
}

}  // namespace halfscope::optimizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope::optimizer {

HWY_EXPORT(compute_floats);
HWY_EXPORT(compute_doubles);

void compute(const Instruction& instruction, bool fma, StepBlock<float>& block) {
  HWY_DYNAMIC_DISPATCH(compute_floats)(instruction, fma, block);
}

void compute(const Instruction& instruction, bool fma, StepBlock<double>& block) {
  HWY_DYNAMIC_DISPATCH(compute_doubles)(instruction, fma, block);
}

}  // namespace halfscope::optimizer
#endif
