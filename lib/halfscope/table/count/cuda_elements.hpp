// SPDX-License-Identifier: Apache-2.0
// How kernels get at elements, and reductions over a block. Device code; internal to table/.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "halfscope/device/launch.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFu, kLanes = 32;
inline constexpr unsigned kMagnitude = 0x7FFFFFFFu;     ///< of binary32
inline constexpr unsigned kInfinityBits = 0x7F800000u;  ///< of binary32
inline constexpr unsigned kHidden = 0x00800000u;        ///< the least normal magnitude of binary32

template <Dtype kDtype>
struct ElementOf {
  using Storage = std::uint16_t;
};
template <>
struct ElementOf<Dtype::f32> {
  using Storage = std::uint32_t;
};

/// An element as binary32, exactly; a NaN stays one. `bits` beyond the element's width are ignored.
template <Dtype kDtype>
__device__ inline unsigned widened(unsigned bits) {
  if constexpr (kDtype == Dtype::f32) {
    return bits;
  } else if constexpr (kDtype == Dtype::bf16) {
    return bits << 16;
  } else {
    __half_raw raw;
    raw.x = static_cast<unsigned short>(bits);
    return halfscope::detail::bit_cast<unsigned>(__half2float(__half(raw)));
  }
}

/// The elements of a word of memory, and of sixteen bytes.
template <Dtype kDtype, class Take>
__device__ inline void take_word(unsigned word, Take& take) {
  take(word);
  if constexpr (kDtype != Dtype::f32) take(word >> 16);
}
template <Dtype kDtype, class Take>
__device__ inline void take_vector(const uint4& vector, Take& take) {
  take_word<kDtype>(vector.x, take);
  take_word<kDtype>(vector.y, take);
  take_word<kDtype>(vector.z, take);
  take_word<kDtype>(vector.w, take);
}

/// Gives take() every element of a tensor that is this thread's, as its bits (of a 16-bit element
/// with others above them). Thread `first` of `threads` has every threads-th vector of 16 bytes
/// from its first on, counted from the tensor's beginning whatever its alignment: so the order of
/// sums does not depend on that. What is left at the end is thread 0's.
template <Dtype kDtype, int kBatch, class Take>
__device__ inline void for_each_element(const void* data, std::int64_t count, std::int64_t first,
                                        std::int64_t threads, Take& take) {
  using Storage = typename ElementOf<kDtype>::Storage;
  constexpr int kPerVector = 16 / sizeof(Storage);
  const auto* const elements = static_cast<const Storage*>(data);
  const std::int64_t vectors = count / kPerVector;
  if (reinterpret_cast<std::uintptr_t>(data) % 16 == 0) {
    const auto* const aligned = static_cast<const uint4*>(data);
    for (std::int64_t v = first; v < vectors; v += kBatch * threads) {
      uint4 batch[kBatch];  // in registers: all under way before the first is needed
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (v + k * threads < vectors) batch[k] = __ldg(aligned + v + k * threads);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (v + k * threads < vectors) take_vector<kDtype>(batch[k], take);
      }
    }
  } else {
    for (std::int64_t v = first; v < vectors; v += threads) {
      for (int k = 0; k < kPerVector; ++k) take(__ldg(elements + v * kPerVector + k));
    }
  }
  if (first != 0) return;
  for (std::int64_t i = vectors * kPerVector; i < count; ++i) take(__ldg(elements + i));
}

// Reductions over a warp: every lane calls, every lane has the result.

template <class T, class Join>
__device__ inline T over_warp(T mine, const Join& join) {
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    mine = join(mine, __shfl_xor_sync(kAllLanes, mine, offset));
  }
  return mine;
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a < b ? b : a; }
};
struct Or {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a | b; }
};

/// The sum over a block of kThreads threads, which all call it, in fixed order; in thread 0.
/// `room`: shared, a number a warp, not in use by another thread.
template <unsigned kThreads>
__device__ inline double sum_over_block(double mine, double* room) {
  const double of_warp = over_warp(mine, Sum());
  if (threadIdx.x % kLanes == 0) room[threadIdx.x / kLanes] = of_warp;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (unsigned warp = 0; warp < kThreads / kLanes; ++warp) sum += room[warp];
  }
  return sum;
}

}  // namespace halfscope::cuda
