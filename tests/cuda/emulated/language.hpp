// SPDX-License-Identifier: Apache-2.0
// What device/launch.hpp says kernels may use of CUDA's language, in C++ for the emulated device.
// To be included by that header alone, behind cuda_runtime.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda/emulated/block.hpp"
#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stream.hpp"

// One variable for all blocks is right: they run one after another, on one thread of the processor.
// (It keeps what the block before left there, as a device's may.)
#undef __shared__
#define __shared__ static
#define __launch_bounds__(...)  // for nvcc's choice of registers
#ifndef __noinline__
#define __noinline__
#endif

// Barriers and the operations of a warp.

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  halfscope::emulated::block_barrier({"__syncthreads", where});
}

inline void __syncwarp(unsigned mask = 0xFFFFFFFF,
                       std::source_location where = std::source_location::current()) {
  halfscope::emulated::warp_gather(0, mask, {"__syncwarp", where});
}

namespace halfscope::emulated {

/// The types CUDA's shuffles are declared for, without conversions.
template <class T>
concept Shuffled = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

/// What the lane that lane_of(own) names gave.
template <Shuffled T, class LaneOf>
T shuffle(unsigned mask, T value, LaneOf lane_of, int width, const Place& place) {
  if (width != static_cast<int>(kWarp)) throw std::invalid_argument("a shuffle of another width");
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const std::uint64_t* all = warp_gather(word, mask, place);
  std::memcpy(&value, &all[lane_of(threadIdx.x % kWarp)], sizeof value);
  return value;
}

}  // namespace halfscope::emulated

template <halfscope::emulated::Shuffled T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) {
  const auto lane = [=](unsigned) { return static_cast<unsigned>(source) % 32; };
  return halfscope::emulated::shuffle(mask, value, lane, width, {"__shfl_sync", where});
}

template <halfscope::emulated::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  std::source_location where = std::source_location::current()) {
  const auto lane = [=](unsigned own) { return (own ^ static_cast<unsigned>(lanes)) % 32; };
  return halfscope::emulated::shuffle(mask, value, lane, width, {"__shfl_xor_sync", where});
}

/// Lanes whose source would lie behind the warp keep their own.
template <halfscope::emulated::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   std::source_location where = std::source_location::current()) {
  const auto lane = [=](unsigned own) { return own + delta < 32 ? own + delta : own; };
  return halfscope::emulated::shuffle(mask, value, lane, width, {"__shfl_down_sync", where});
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location where = std::source_location::current()) {
  const std::uint64_t* all =
      halfscope::emulated::warp_gather(predicate != 0, mask, {"__ballot_sync", where});
  unsigned out = 0;
  for (unsigned i = 0; i < 32; ++i) out |= static_cast<unsigned>(all[i]) << i;
  return out;
}

inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  const std::uint64_t* all =
      halfscope::emulated::warp_gather(predicate != 0, mask, {"__any_sync", where});
  return std::any_of(all, all + 32, [](std::uint64_t x) { return x != 0; }) ? 1 : 0;
}

// Atomic operations return what was there. Threads run one after another, so plain ones are atomic.

#define HALFSCOPE_EMULATED_ATOMIC(name, type, expression)             \
  inline type name(type* address, std::type_identity_t<type> value) { \
    const type before = *address;                                     \
    *address = (expression);                                          \
    return before;                                                    \
  }
#define HALFSCOPE_EMULATED_ATOMICS(type)                              \
  HALFSCOPE_EMULATED_ATOMIC(atomicOr, type, before | value)           \
  HALFSCOPE_EMULATED_ATOMIC(atomicAnd, type, before& value)           \
  HALFSCOPE_EMULATED_ATOMIC(atomicMin, type, std::min(before, value)) \
  HALFSCOPE_EMULATED_ATOMIC(atomicMax, type, std::max(before, value)) \
  HALFSCOPE_EMULATED_ATOMIC(atomicExch, type, (static_cast<void>(before), value))
HALFSCOPE_EMULATED_ATOMICS(int)
HALFSCOPE_EMULATED_ATOMICS(unsigned)
HALFSCOPE_EMULATED_ATOMICS(unsigned long long)
HALFSCOPE_EMULATED_ATOMIC(atomicMin, long long, std::min(before, value))
HALFSCOPE_EMULATED_ATOMIC(atomicMax, long long, std::max(before, value))
HALFSCOPE_EMULATED_ATOMIC(atomicAdd, unsigned, before + value)
HALFSCOPE_EMULATED_ATOMIC(atomicAdd, unsigned long long, before + value)
HALFSCOPE_EMULATED_ATOMIC(atomicAdd, int,  // wraps around, as the device's
                          static_cast<int>(static_cast<unsigned>(before) +
                                           static_cast<unsigned>(value)))
#undef HALFSCOPE_EMULATED_ATOMICS
#undef HALFSCOPE_EMULATED_ATOMIC

inline void __threadfence() {}
inline void __threadfence_block() {}

// Integers and bits.

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
  return out;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}

// One rounding each, to nearest; the sources are compiled without contraction.

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// CUDA's global min and max: of two integers of one type, of an int and an unsigned as unsigned,
// and of floating-point numbers where a NaN loses.

#define HALFSCOPE_EMULATED_MIN_MAX(type)                       \
  constexpr type min(type a, type b) { return b < a ? b : a; } \
  constexpr type max(type a, type b) { return a < b ? b : a; }
HALFSCOPE_EMULATED_MIN_MAX(int)
HALFSCOPE_EMULATED_MIN_MAX(unsigned)
HALFSCOPE_EMULATED_MIN_MAX(long)
HALFSCOPE_EMULATED_MIN_MAX(unsigned long)
HALFSCOPE_EMULATED_MIN_MAX(long long)
HALFSCOPE_EMULATED_MIN_MAX(unsigned long long)
#undef HALFSCOPE_EMULATED_MIN_MAX
constexpr unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
constexpr unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
constexpr unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
constexpr unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

namespace halfscope::emulated {

/// What a launch would fail with: limits of sm_90, and pointers that are not the device's. Throws.
void check_launch(const char* name, unsigned threads, std::size_t shared);
void check_argument(const char* name, std::size_t position, const void* argument);

template <class... Values>
void check_arguments(const char* name, const std::tuple<Values...>& values) {
  std::size_t position = 0;
  const auto check_one = [&](const auto& value) {
    if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>) {
      check_argument(name, position, value);
    }
    ++position;
  };
  std::apply([&](const auto&... value) { (check_one(value), ...); }, values);
}

}  // namespace halfscope::emulated

namespace halfscope::cuda {

struct Grid {
  unsigned blocks = 0, threads = 256;
  std::size_t shared = 0;  ///< bytes of dynamic shared memory
};

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream,
            Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "they are copied as bytes");
  static_assert((std::size_t{0} + ... + sizeof(Parameters)) <= 32764, "CUDA's limit since 12.1");
  if (grid.blocks == 0) return;
  emulated::check_launch(name, grid.threads, grid.shared);
  const std::tuple<std::remove_cv_t<Parameters>...> values(static_cast<Parameters>(arguments)...);
  emulated::check_arguments(name, values);
  emulated::enqueue(stream, [=, title = std::string(name)] {
    emulated::run_grid(
        title, [&] { std::apply(kernel, values); }, grid.blocks, grid.threads, grid.shared);
  });
}

template <class T>
T* dynamic_shared() {
  static_assert(alignof(T) <= 16);
  return static_cast<T*>(emulated::dynamic_shared_memory());
}

}  // namespace halfscope::cuda
