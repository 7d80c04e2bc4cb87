// SPDX-License-Identifier: Apache-2.0
// Conversions from and to binary32, and quantisation, with run-time dispatch to the widest vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/array/convert_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "halfscope/array/block-inl.hpp"
#include "halfscope/array/narrow-inl.hpp"
#include "halfscope/array/random-inl.hpp"
#include "halfscope/array/scalar.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {
#if HALFSCOPE_VECTORS

/// Converts binary32 to encodings (Out: std::uint16_t, std::uint8_t) or to rounded floats.
template <bool kSameExponents, bool kStochastic, class Out>
struct Narrow {
  static constexpr std::size_t kBlock = kLanes;
  NarrowingPlan plan;
  const std::uint32_t* random;  ///< word i belongs to element i; only for stochastic rounding
  Fired fired;

  template <bool kStream>
  HWY_INLINE void block(const float* in, Out* out, std::size_t i) {
    Vector r = hn::Zero(Words());
    if constexpr (kStochastic) {
      r = hn::ShiftRightSame(hn::LoadU(Words(), random + i), plan.random_shift);
      r = hn::ShiftLeftSame(r, plan.random_shift);
    }
    constexpr bool kWide = std::is_same_v<Out, float>;
    const Vector result = narrow<kSameExponents, kStochastic, kWide>(plan, load(in), r, fired);
    store<kStream>(result, out);
  }
};

template <class In>
struct Widen {
  static constexpr std::size_t kBlock = kLanes;
  WideningPlan plan;
  Fired fired;

  template <bool kStream>
  HWY_INLINE void block(const In* in, float* out, std::size_t) {
    store<kStream>(widen(plan, load(in), fired), out);
  }
};

template <bool kSameExponents, class Out>
Raised narrow_stochastic(const NarrowingJob& job, const float* in, Out* out, std::size_t first,
                         std::size_t n) {
  constexpr std::size_t kChunk = 1024;
  HWY_ALIGN std::uint32_t random[kChunk + 2 * kRandomSlack];
  Narrow<kSameExponents, true, Out> kernel = {job.plan, nullptr, nothing_fired()};
  for (std::size_t done = 0; done < n; done += kChunk) {
    const std::size_t count = HWY_MIN(kChunk, n - done);
    const std::uint64_t index = job.options.first_index + first + done;
    fill_random(job.options.seed, index / 4, index % 4 + count, random);
    kernel.random = random + index % 4;
    for_each_block<false>(kernel, in + done, out + done, count);
  }
  return {kernel.fired.bits(), 0};
}

template <bool kSameExponents, class Out>
Raised narrow_vectors(const NarrowingJob& job, const float* in, Out* out, std::size_t first,
                      std::size_t n) {
  if (job.plan.stochastic) return narrow_stochastic<kSameExponents>(job, in, out, first, n);
  Narrow<kSameExponents, false, Out> kernel = {job.plan, nullptr, nothing_fired()};
  if (job.stream) {
    for_each_block<true>(kernel, in, out, n);
  } else {
    for_each_block<false>(kernel, in, out, n);
  }
  return {kernel.fired.bits(), 0};
}

template <class Out>
Raised narrow_any(const NarrowingJob& job, const float* in, Out* out, std::size_t first,
                  std::size_t n) {
  return job.plan.same_exponents ? narrow_vectors<true>(job, in, out, first, n)
                                 : narrow_vectors<false>(job, in, out, first, n);
}

#if HALFSCOPE_F16C
constexpr unsigned kAllFlags = kMxcsrInvalid | kMxcsrOverflow | kMxcsrUnderflow | kMxcsrInexact;

/// kReplace: all NaNs are replaced by `nan`; otherwise they are the processor's.
template <bool kReplace>
struct NarrowByF16c {
  static constexpr std::size_t kBlock = 2 * kLanes;
  std::uint16_t nan;

  template <bool kStream>
  HWY_INLINE void block(const float* in, std::uint16_t* out, std::size_t) {
    HalfVector x = narrow_by_f16c<kControlled>(hn::LoadU(Floats(), in));
    HalfVector y = narrow_by_f16c<kControlled>(hn::LoadU(Floats(), in + kLanes));
    if constexpr (kReplace) {
      const HalfVector replacement = hn::Set(Halves(), nan);
      x = hn::IfThenElse(is_nan(x, 0x7C00), replacement, x);
      y = hn::IfThenElse(is_nan(y, 0x7C00), replacement, y);
    }
    store<kStream>(x, out);
    store<kStream>(y, out + kLanes);
  }
};

template <bool kReplace>
HWY_INLINE FloatVector with_nan(FloatVector x, FloatVector nan) {
  return kReplace ? hn::IfThenElse(hn::IsNaN(x), nan, x) : x;
}

template <bool kReplace>
struct QuantiseByF16c {
  static constexpr std::size_t kBlock = 2 * kLanes;
  float nan;

  template <bool>
  HWY_INLINE void block(const float* in, float* out, std::size_t) {
    const HalfVector x = narrow_by_f16c<kControlled>(hn::LoadU(Floats(), in));
    const HalfVector y = narrow_by_f16c<kControlled>(hn::LoadU(Floats(), in + kLanes));
    const FloatVector replacement = hn::Set(Floats(), nan);
    hn::StoreU(with_nan<kReplace>(widen_by_f16c(x), replacement), Floats(), out);
    hn::StoreU(with_nan<kReplace>(widen_by_f16c(y), replacement), Floats(), out + kLanes);
  }
};

template <bool kReplace>
struct WidenByF16c {
  static constexpr std::size_t kBlock = kLanes;
  float nan;

  template <bool kStream>
  HWY_INLINE void block(const std::uint16_t* in, float* out, std::size_t) {
    const FloatVector x = widen_by_f16c(hn::LoadU(Halves(), in));
    store<kStream>(hn::BitCast(Words(), with_nan<kReplace>(x, hn::Set(Floats(), nan))), out);
  }
};

template <template <bool> class Kernel, class Nan, class In, class Out>
Raised by_f16c(bool replace, Nan nan, bool stream, const In* in, Out* out, std::size_t n) {
  Kernel<true> replacing = {nan};
  Kernel<false> plain = {nan};
  if (replace) {
    for_each_block<false>(replacing, in, out, n);
  } else if (stream) {
    for_each_block<true>(plain, in, out, n);
  } else {
    for_each_block<false>(plain, in, out, n);
  }
  return {0, kAllFlags};
}
#endif  // HALFSCOPE_F16C
#endif  // HALFSCOPE_VECTORS

Raised narrow_to_16(const NarrowingJob& job, const float* in, std::uint16_t* out, std::size_t first,
                    std::size_t n) {
#if HALFSCOPE_F16C
  if (job.way == Way::f16c) {
    const auto nan = static_cast<std::uint16_t>(job.plan.narrow.nan[0]);
    return by_f16c<NarrowByF16c>(job.options.modes.nan != NanPolicy::x86, nan, job.stream, in, out,
                                 n);
  }
#endif
#if HALFSCOPE_VECTORS
  if (job.way != Way::scalar) return narrow_any(job, in, out, first, n);
#endif
  return {mxcsr_bits(scalar::narrow(job, in, out, first, n)), 0};
}

Raised narrow_to_8(const NarrowingJob& job, const float* in, std::uint8_t* out, std::size_t first,
                   std::size_t n) {
#if HALFSCOPE_VECTORS
  if (job.way != Way::scalar) return narrow_any(job, in, out, first, n);
#endif
  return {mxcsr_bits(scalar::narrow(job, in, out, first, n)), 0};
}

Raised quantise_values(const NarrowingJob& job, float* values, std::size_t first, std::size_t n) {
#if HALFSCOPE_F16C
  if (job.way == Way::f16c) {
    return by_f16c<QuantiseByF16c>(job.options.modes.nan != NanPolicy::x86,
                                   std::bit_cast<float>(job.plan.wide.nan[0]), false, values,
                                   values, n);
  }
#endif
#if HALFSCOPE_VECTORS
  if (job.way != Way::scalar) return narrow_any<float>(job, values, values, first, n);
#endif
  return {mxcsr_bits(scalar::quantise(job, values, first, n)), 0};
}

template <class In>
Raised widen_any(const WideningJob& job, const In* in, float* out, std::size_t first,
                 std::size_t n) {
#if HALFSCOPE_VECTORS
  if (job.way != Way::scalar) {
    Widen<In> kernel = {job.plan, nothing_fired()};
    for_each_block<false>(kernel, in, out, n);
    return {kernel.fired.bits(), 0};
  }
#endif
  return {mxcsr_bits(scalar::widen(job, in, out, first, n)), 0};
}

Raised widen_16(const WideningJob& job, const std::uint16_t* in, float* out, std::size_t first,
                std::size_t n) {
#if HALFSCOPE_F16C
  if (job.way == Way::f16c) {
    return by_f16c<WidenByF16c>(job.options.modes.nan != NanPolicy::x86,
                                std::bit_cast<float>(job.plan.wide_nan[0]), job.stream, in, out, n);
  }
#endif
  return widen_any(job, in, out, first, n);
}

Raised widen_8(const WideningJob& job, const std::uint8_t* in, float* out, std::size_t first,
               std::size_t n) {
  return widen_any(job, in, out, first, n);
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(narrow_to_16);
HWY_EXPORT(narrow_to_8);
HWY_EXPORT(quantise_values);
HWY_EXPORT(widen_16);
HWY_EXPORT(widen_8);

Flags narrow_part(const NarrowingJob& job, const float* in, std::uint16_t* out, std::size_t first,
                  std::size_t n) {
  const FloatEnvironment environment(control_of(job.options.modes.rounding));
  return environment.flags(HWY_DYNAMIC_DISPATCH(narrow_to_16)(job, in, out, first, n));
}

Flags narrow_part(const NarrowingJob& job, const float* in, std::uint8_t* out, std::size_t first,
                  std::size_t n) {
  const FloatEnvironment environment(RoundingControl::nearest);
  return environment.flags(HWY_DYNAMIC_DISPATCH(narrow_to_8)(job, in, out, first, n));
}

Flags quantise_part(const NarrowingJob& job, float* values, std::size_t first, std::size_t n) {
  const FloatEnvironment environment(control_of(job.options.modes.rounding));
  return environment.flags(HWY_DYNAMIC_DISPATCH(quantise_values)(job, values, first, n));
}

Flags widen_part(const WideningJob& job, const std::uint16_t* in, float* out, std::size_t first,
                 std::size_t n) {
  const FloatEnvironment environment(RoundingControl::nearest);
  return environment.flags(HWY_DYNAMIC_DISPATCH(widen_16)(job, in, out, first, n));
}

Flags widen_part(const WideningJob& job, const std::uint8_t* in, float* out, std::size_t first,
                 std::size_t n) {
  const FloatEnvironment environment(RoundingControl::nearest);
  return environment.flags(HWY_DYNAMIC_DISPATCH(widen_8)(job, in, out, first, n));
}

}  // namespace halfscope
#endif
