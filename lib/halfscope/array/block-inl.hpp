// SPDX-License-Identifier: Apache-2.0
// Loads and stores of vectors of 32-bit words, and loops over blocks. Included once for each target
// of Highway.
#if defined(HALFSCOPE_ARRAY_BLOCK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFSCOPE_ARRAY_BLOCK_INL
#undef HALFSCOPE_ARRAY_BLOCK_INL
#else
#define HALFSCOPE_ARRAY_BLOCK_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>

// The vector kernels depend on the floating-point control word (environment.hpp). On other
// processors, and on x86 before SSE4, the scalar code runs.
#undef HALFSCOPE_VECTORS
#undef HALFSCOPE_F16C
#define HALFSCOPE_VECTORS \
  ((HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4) || (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON))
#define HALFSCOPE_F16C (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)

#if HALFSCOPE_VECTORS
HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint32_t>;
using Vector = hn::Vec<Words>;
using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
using Halves = hn::Rebind<std::uint16_t, Words>;  ///< 16-bit lanes, half a vector
using HalfVector = hn::Vec<Halves>;
using Bytes = hn::Rebind<std::uint8_t, Words>;

constexpr std::size_t kLanes = hn::MaxLanes(Words());
constexpr std::size_t kLine = 64;  ///< bytes of a cache line

HWY_INLINE Vector load(const float* p) { return hn::BitCast(Words(), hn::LoadU(Floats(), p)); }
HWY_INLINE Vector load(const std::uint16_t* p) {
  return hn::PromoteTo(Words(), hn::LoadU(Halves(), p));
}
HWY_INLINE Vector load(const std::uint8_t* p) {
  return hn::PromoteTo(Words(), hn::LoadU(Bytes(), p));
}

template <bool kStream>
HWY_INLINE void store(HalfVector x, std::uint16_t* p) {
  if constexpr (kStream && kLanes >= 8) {
    hn::Stream(x, Halves(), p);
  } else {
    hn::StoreU(x, Halves(), p);
  }
}
template <bool kStream>
HWY_INLINE void store(Vector x, std::uint16_t* p) {
  store<kStream>(hn::TruncateTo(Halves(), x), p);
}
template <bool>
HWY_INLINE void store(Vector x, std::uint8_t* p) {
  hn::StoreU(hn::TruncateTo(Bytes(), x), Bytes(), p);
}
template <bool kStream>
HWY_INLINE void store(Vector x, float* p) {
  const FloatVector value = hn::BitCast(Floats(), x);
  if constexpr (kStream) {
    hn::Stream(value, Floats(), p);
  } else {
    hn::StoreU(value, Floats(), p);
  }
}

/// Number of elements up to the next cache line.
template <class T>
HWY_INLINE std::size_t to_next_line(const T* p) {
  return (kLine - reinterpret_cast<std::uintptr_t>(p) % kLine) % kLine / sizeof(T);
}

/// Processes fewer elements than a block, padded with zeros, which raise no flags.
template <class Kernel, class In, class Out>
HWY_NOINLINE void partial_block(Kernel& kernel, const In* in, Out* out, std::size_t n,
                                std::size_t i) {
  HWY_ALIGN In from[Kernel::kBlock] = {};
  HWY_ALIGN Out to[Kernel::kBlock];
  std::memcpy(from, in, n * sizeof(In));
  kernel.template block<false>(from, to, i);
  std::memcpy(out, to, n * sizeof(Out));
}

/// Calls kernel.block(in + i, out + i, i) for each block of the elements [i, n).
template <bool kStream, class Kernel, class In, class Out>
HWY_INLINE void blocks(Kernel& kernel, const In* in, Out* out, std::size_t i, std::size_t n) {
  Kernel own = kernel;  // a local copy, which stores cannot alias, so that it stays in registers
  for (; i + Kernel::kBlock <= n; i += Kernel::kBlock) {
    own.template block<kStream>(in + i, out + i, i);
  }
  kernel = own;
  if (i < n) partial_block(kernel, in + i, out + i, n - i, i);
}

/// Calls kernel.block() for all elements. kStream: stores bypass the caches, from the first whole
/// line on.
template <bool kStream, class Kernel, class In, class Out>
HWY_INLINE void for_each_block(Kernel& kernel, const In* in, Out* out, std::size_t n) {
  const std::size_t before = kStream ? HWY_MIN(n, to_next_line(out)) : 0;
  blocks<false>(kernel, in, out, 0, before);
  blocks<kStream>(kernel, in, out, before, n);
  if constexpr (kStream) hwy::FlushStream();
}

#if HALFSCOPE_F16C
constexpr int kControlled = 4;  ///< instead of a direction: MXCSR's

/// Converts with a direction as in RoundingControl. Highway's own DemoteTo only rounds to nearest.
template <int kDirection>
HWY_INLINE HalfVector narrow_by_f16c(FloatVector x) {
#if HWY_TARGET <= HWY_AVX3
  return HalfVector{_mm512_cvtps_ph(x.raw, kDirection)};
#else
  return HalfVector{_mm256_cvtps_ph(x.raw, kDirection)};
#endif
}

HWY_INLINE FloatVector widen_by_f16c(HalfVector x) {
  return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), x));
}
#endif

/// Returns true in lanes with NaN encodings of a 16-bit format with the given infinity.
HWY_INLINE hn::Mask<Halves> is_nan(HalfVector x, std::uint16_t infinity) {
  const Halves d;
  const hn::RebindToSigned<Halves> integers;  // values of 15 bits, so signed comparison is correct
  const auto magnitude = hn::And(x, hn::Set(d, std::uint16_t{0x7FFF}));
  return hn::RebindMask(d, hn::Gt(hn::BitCast(integers, magnitude),
                                  hn::Set(integers, static_cast<std::int16_t>(infinity))));
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
