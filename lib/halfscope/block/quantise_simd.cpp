// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of blocks, and elements rounded to nearest even, with run-time dispatch to the
// widest vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/block/quantise_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

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
  Vector largest;  ///< largest element, as binary32 encoding
  Vector first;    ///< 2^emin, as binary32 encoding
  Vector up;       ///< `cut` in the exponent field
  Vector offset;   ///< between the two exponent fields, at its place in a code
  Vector nan;
  int cut;         ///< bits dropped from a binary32 significand
  int sign_shift;  ///< from binary32's sign to the code's
};

HWY_INLINE ElementPlan plan_of(Element element) {
  const Format f = format_of(element);
  const int cut = 24 - f.precision;
  const std::uint32_t first = static_cast<std::uint32_t>(f.emin() + 127) << 23;
  return {set(detail::bit_cast<std::uint32_t>(largest_of(element))),
          set(first),
          set(static_cast<std::uint32_t>(cut) << 23),
          set(first >> cut),
          set(encode(element, detail::bit_cast<float>(0x7FC00000U))),
          cut,
          32 - f.width};
}

/// Rounds to nearest even and saturates. The processor's addition rounds: the last place of the
/// power of two that is added is the last place of the code. The sum less that power counts such
/// places, and the code is the count plus the exponent field.
HWY_INLINE Vector encode_vector(const ElementPlan& plan, FloatVector value) {
  const Vector bits = hn::BitCast(Words(), value);
  const Vector magnitude = hn::And(bits, set(0x7FFFFFFF));
  const Vector near = hn::BitCast(Words(), hn::Min(signed_of(magnitude), signed_of(plan.largest)));
  const auto field = signed_of(hn::And(near, set(0x7F800000)));
  const Vector binade = hn::BitCast(Words(), hn::Max(field, signed_of(plan.first)));
  const Vector power = hn::Add(binade, plan.up);
  const FloatVector sum = hn::Add(hn::BitCast(Floats(), near), hn::BitCast(Floats(), power));
  const Vector places = hn::Sub(hn::BitCast(Words(), sum), power);
  const Vector code = hn::Add(places, hn::Sub(hn::ShiftRightSame(binade, plan.cut), plan.offset));
  const Vector sign = hn::ShiftRightSame(hn::And(bits, set(0x80000000)), plan.sign_shift);
  const auto nan = hn::Gt(signed_of(magnitude), signed_of(set(0x7F800000)));
  return hn::IfThenElse(hn::RebindMask(Words(), nan), plan.nan, hn::Or(code, sign));
}

constexpr std::size_t kFour = 4 * kLanes;
using AllBytes = hn::Repartition<std::uint8_t, Words>;

/// Stores the low bytes of four vectors, one after the other. Lanes are below 256.
HWY_INLINE void store_four(Vector a, Vector b, Vector c, Vector d, std::uint8_t* p) {
  const Vector low = hn::Or(a, hn::ShiftLeft<8>(b));
  const Vector high = hn::Or(hn::ShiftLeft<16>(c), hn::ShiftLeft<24>(d));
  HWY_ALIGN static constexpr std::uint8_t kTurn[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                       2, 6, 10, 14, 3, 7, 11, 15};
  const auto turned = hn::TableLookupBytes(hn::BitCast(AllBytes(), hn::Or(low, high)),
                                           hn::LoadDup128(AllBytes(), kTurn));
  // Now each group of 128 bits has four bytes of a, of b, of c and of d.
  std::uint32_t order[kLanes];
  constexpr std::size_t kGroups = kLanes / 4;
  for (std::size_t i = 0; i < kLanes; ++i) {
    order[i] = static_cast<std::uint32_t>(i % kGroups * 4 + i / kGroups);
  }
  const auto whole =
      hn::TableLookupLanes(hn::BitCast(Words(), turned), hn::SetTableIndices(Words(), order));
  hn::StoreU(hn::BitCast(AllBytes(), whole), AllBytes(), p);
}

/// Loads of vectors of values times, or divided by, their blocks' factors.
template <bool kDivide>
struct Scaled {
  const float* values;
  const float* factors;
  int log2_width;

  HWY_INLINE FloatVector factor_at(std::size_t i) const {
    return hn::Set(Floats(), factors[i >> log2_width]);
  }
  HWY_INLINE FloatVector at(std::size_t i) const {
    return by(hn::LoadU(Floats(), values + i), factor_at(i));
  }
  static HWY_INLINE FloatVector by(FloatVector x, FloatVector factor) {
    return kDivide ? hn::Div(x, factor) : hn::Mul(x, factor);
  }
};

template <bool kDivide>
void encode_values(Element element, const Scaled<kDivide>& scaled, std::size_t count,
                   std::uint8_t* codes) {
  const ElementPlan plan = plan_of(element);
  const auto code_at = [&](std::size_t i) HWY_ATTR { return encode_vector(plan, scaled.at(i)); };
  std::size_t i = 0;
  for (; i + kFour <= count; i += kFour) {
    for (std::size_t k = 0; k < kFour; k += kLine / sizeof(float)) {
      // The next tile, while this one is computed. No pointer may be computed beyond an array.
      const auto begin = reinterpret_cast<std::uintptr_t>(scaled.values);
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      hwy::Prefetch(reinterpret_cast<const float*>(begin + (i + k + count) * sizeof(float)));
    }
    store_four(code_at(i), code_at(i + kLanes), code_at(i + 2 * kLanes), code_at(i + 3 * kLanes),
               codes + i);
  }
  for (; i + kLanes <= count; i += kLanes) store<false>(code_at(i), codes + i);
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  HWY_ALIGN std::uint8_t encoded[kLanes];
  for (std::size_t k = i; k < count; ++k) rest[k - i] = scaled.values[k];
  const FloatVector x = scaled.by(hn::Load(Floats(), rest), scaled.factor_at(i));
  store<false>(encode_vector(plan, x), encoded);
  for (std::size_t k = i; k < count; ++k) codes[k] = encoded[k - i];
}

template <class D>
HWY_INLINE hn::Vec<D> larger(D d, hn::Vec<D> a, hn::Vec<D> b) {  // magnitudes
  const hn::RebindToSigned<D> integers;
  return hn::BitCast(d, hn::Max(hn::BitCast(integers, a), hn::BitCast(integers, b)));
}
HWY_INLINE Vector larger(Vector a, Vector b) { return larger(Words(), a, b); }

/// Returns the largest of the groups of 128 bits, lane by lane.
template <class D>
HWY_INLINE auto largest_group(D d, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return largest_group(half, larger(half, hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}

/// Returns the largest magnitudes of n values, a multiple of kLanes, lane by lane.
HWY_INLINE Vector largest_lanes(const float* values, std::size_t n) {
  Vector largest = hn::Zero(Words());
  for (std::size_t i = 0; i < n; i += kLanes) {
    largest = larger(largest, hn::And(load(values + i), set(0x7FFFFFFF)));
  }
  return largest;
}

/// Updates the largest magnitudes of four blocks of `width` values, a multiple of kLanes.
HWY_INLINE void update_four(const float* values, std::size_t width, std::uint32_t* largest) {
  const Vector a = largest_lanes(values, width);
  const Vector b = largest_lanes(values + width, width);
  const Vector c = largest_lanes(values + 2 * width, width);
  const Vector d = largest_lanes(values + 3 * width, width);
  const Vector ac = larger(hn::InterleaveLower(a, c), hn::InterleaveUpper(Words(), a, c));
  const Vector bd = larger(hn::InterleaveLower(b, d), hn::InterleaveUpper(Words(), b, d));
  // Then each group of 128 bits has a lane for a, b, c and d.
  const Vector all = larger(hn::InterleaveLower(ac, bd), hn::InterleaveUpper(Words(), ac, bd));
  const hn::FixedTag<std::uint32_t, 4> four;
  const auto most = larger(four, largest_group(Words(), all), hn::LoadU(four, largest));
  hn::StoreU(most, four, largest);
}
#endif

void update_largest_target(const float* values, Span span, std::uint32_t* largest) {
  const std::size_t width = span.log2_width > 32 ? span.count : std::size_t{1} << span.log2_width;
  std::size_t i = 0;
#if HALFSCOPE_VECTORS
  for (; width % kLanes == 0 && i + 4 * width <= span.count; i += 4 * width, largest += 4) {
    update_four(values + i, width, largest);
  }
#endif
  for (; i < span.count; i += width, ++largest) {
    const std::size_t n = std::min(span.count - i, width);
    std::size_t k = 0;
#if HALFSCOPE_VECTORS
    k = n - n % kLanes;
    const Vector lanes = largest_lanes(values + i, k);
    *largest = std::max(*largest, hn::GetLane(hn::MaxOfLanes(Words(), lanes)));
#endif
    for (; k < n; ++k) *largest = std::max(*largest, steps::magnitude_of(values[i + k]));
  }
}

void encode_span_target(Element element, bool divide, const float* values, Span span,
                        const float* factors, std::uint8_t* codes) {
#if HALFSCOPE_VECTORS
  if (span.log2_width > 32 || (std::size_t{1} << span.log2_width) % kLanes == 0) {
    const auto encode_all = [&](const auto& scaled) {
      encode_values(element, scaled, span.count, codes);
    };
    return divide ? encode_all(Scaled<true>{values, factors, span.log2_width})
                  : encode_all(Scaled<false>{values, factors, span.log2_width});
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

HWY_EXPORT(update_largest_target);
HWY_EXPORT(encode_span_target);

void update_largest(const float* values, Span span, std::uint32_t* largest) {
  if (span.count == 0) return;
  HWY_DYNAMIC_DISPATCH(update_largest_target)(values, span, largest);
}

void encode_span(Element element, bool divide, const float* values, Span span, const float* factors,
                 std::uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(encode_span_target)(element, divide, values, span, factors, codes);
}

}  // namespace halfscope::block
#endif
