// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of blocks, and elements rounded to nearest even, with run-time dispatch to the
// widest vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/block/quantise_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "halfscope/array/block-inl.hpp"
#include "halfscope/block/tile.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::block::HWY_NAMESPACE {
#if HALFSCOPE_VECTORS

namespace hn = hwy::HWY_NAMESPACE;
using namespace halfscope::HWY_NAMESPACE;
using Integers = hn::RebindToSigned<Words>;

HWY_INLINE Vector set(std::uint32_t x) { return hn::Set(Words(), x); }
HWY_INLINE hn::Vec<Integers> signed_of(Vector x) { return hn::BitCast(Integers(), x); }

/// Properties of an element's format for encode_vector().
struct ElementPlan {
  Vector largest;      ///< largest element, as binary32 encoding
  Vector first;        ///< 2^emin, as binary32 encoding
  Vector before_half;  ///< half of the last place kept, less one
  Vector offset;       ///< between the exponent fields, at their place in a code
  FloatVector magic;   ///< a power of two whose last place is the format's smallest number
  Vector nan;
  int cut;         ///< bits dropped from a binary32 significand
  int sign_shift;  ///< from binary32's sign to the code's
};

HWY_INLINE ElementPlan plan_of(Element element) {
  const Format f = format_of(element);
  const auto field = [](int exponent) { return static_cast<std::uint32_t>(exponent + 127); };
  const int cut = 24 - f.precision;
  const float magic = detail::bit_cast<float>(field(f.min_quantum_exponent() + 23) << 23);
  return {set(detail::bit_cast<std::uint32_t>(largest_of(element))),
          set(field(f.emin()) << 23),
          set((1U << (cut - 1)) - 1),
          set((field(f.emin()) - 1) << f.fraction_bits()),
          hn::Set(Floats(), magic),
          set(encode(element, detail::bit_cast<float>(0x7FC00000U))),
          cut,
          32 - f.width};
}

/// Rounds to nearest even and saturates. A subnormal is added to a number whose last place is the
/// format's smallest, so that the processor's addition rounds it.
HWY_INLINE Vector encode_vector(const ElementPlan& plan, FloatVector value) {
  const Vector bits = hn::BitCast(Words(), value);
  const Vector magnitude = hn::And(bits, set(0x7FFFFFFF));
  const Vector near = hn::BitCast(Words(), hn::Min(signed_of(magnitude), signed_of(plan.largest)));
  const Vector odd = hn::And(hn::ShiftRightSame(near, plan.cut), set(1));
  const Vector rounded = hn::Add(near, hn::Add(plan.before_half, odd));
  const Vector normal = hn::Sub(hn::ShiftRightSame(rounded, plan.cut), plan.offset);
  const FloatVector sum = hn::Add(hn::BitCast(Floats(), near), plan.magic);
  const Vector subnormal = hn::Sub(hn::BitCast(Words(), sum), hn::BitCast(Words(), plan.magic));
  const auto small = hn::Lt(signed_of(near), signed_of(plan.first));
  const Vector code = hn::IfThenElse(hn::RebindMask(Words(), small), subnormal, normal);
  const Vector sign = hn::ShiftRightSame(hn::And(bits, set(0x80000000)), plan.sign_shift);
  const auto nan = hn::Gt(signed_of(magnitude), signed_of(set(0x7F800000)));
  return hn::IfThenElse(hn::RebindMask(Words(), nan), plan.nan, hn::Or(code, sign));
}

template <bool kDivide>
void encode_values(Element element, const float* values, Span span, const float* factors,
                   std::uint8_t* codes) {
  const ElementPlan plan = plan_of(element);
  const auto factor_at = [&](std::size_t i) {
    return hn::Set(Floats(), factors[i >> span.log2_width]);
  };
  const auto scaled = [](FloatVector x, FloatVector factor) {
    return kDivide ? hn::Div(x, factor) : hn::Mul(x, factor);
  };
  std::size_t i = 0;
  for (; i + kLanes <= span.count; i += kLanes) {
    const FloatVector x = scaled(hn::LoadU(Floats(), values + i), factor_at(i));
    store<false>(encode_vector(plan, x), codes + i);
  }
  if (i == span.count) return;
  HWY_ALIGN float rest[kLanes] = {};
  HWY_ALIGN std::uint8_t encoded[kLanes];
  for (std::size_t k = i; k < span.count; ++k) rest[k - i] = values[k];
  const FloatVector x = scaled(hn::Load(Floats(), rest), factor_at(i));
  store<false>(encode_vector(plan, x), encoded);
  for (std::size_t k = i; k < span.count; ++k) codes[k] = encoded[k - i];
}

HWY_INLINE Vector magnitude_at(const float* p) { return hn::And(load(p), set(0x7FFFFFFF)); }

std::uint32_t largest_in(const float* values, std::size_t n) {
  Vector largest = hn::Zero(Words());
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    largest =
        hn::BitCast(Words(), hn::Max(signed_of(largest), signed_of(magnitude_at(values + i))));
  }
  std::uint32_t most = hn::GetLane(hn::MaxOfLanes(Words(), largest));
  for (; i < n; ++i) {
    const std::uint32_t magnitude = detail::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFF;
    if (magnitude > most) most = magnitude;
  }
  return most;
}
#endif

void raise_largest_target(const float* values, Span span, std::uint32_t* largest) {
  const std::size_t width = span.log2_width > 32 ? span.count : std::size_t{1} << span.log2_width;
  for (std::size_t i = 0; i < span.count; i += width, ++largest) {
    const std::size_t n = span.count - i < width ? span.count - i : width;
#if HALFSCOPE_VECTORS
    const std::uint32_t most = largest_in(values + i, n);
    if (most > *largest) *largest = most;
#else
    for (std::size_t k = i; k < i + n; ++k) {
      const std::uint32_t magnitude = detail::bit_cast<std::uint32_t>(values[k]) & 0x7FFFFFFF;
      if (magnitude > *largest) *largest = magnitude;
    }
#endif
  }
}

void encode_span_target(Element element, bool divide, const float* values, Span span,
                        const float* factors, std::uint8_t* codes) {
#if HALFSCOPE_VECTORS
  if (span.log2_width > 32 || (std::size_t{1} << span.log2_width) % kLanes == 0) {
    return divide ? encode_values<true>(element, values, span, factors, codes)
                  : encode_values<false>(element, values, span, factors, codes);
  }
#endif
  for (std::size_t i = 0; i < span.count; ++i) {
    const float factor = factors[i >> span.log2_width];
    codes[i] = encode(element, divide ? values[i] / factor : values[i] * factor);
  }
}

}  // namespace halfscope::block::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope::block {

HWY_EXPORT(raise_largest_target);
HWY_EXPORT(encode_span_target);

void raise_largest(const float* values, Span span, std::uint32_t* largest) {
  HWY_DYNAMIC_DISPATCH(raise_largest_target)(values, span, largest);
}

void encode_span(Element element, bool divide, const float* values, Span span, const float* factors,
                 std::uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(encode_span_target)(element, divide, values, span, factors, codes);
}

}  // namespace halfscope::block
#endif
