// SPDX-License-Identifier: Apache-2.0
// Access of kernels to elements, and reductions over a block. Device code; internal to table/.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "halfscope/device/launch.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFu, kLanes = 32;
inline constexpr unsigned kMagnitude = 0x7FFFFFFFu;     ///< magnitude mask of binary32
inline constexpr unsigned kInfinityBits = 0x7F800000u;  ///< infinity in binary32
inline constexpr unsigned kHidden = 0x00800000u;        ///< the least normal magnitude of binary32

template <Dtype kDtype>
struct ElementOf {
  using Storage = std::uint16_t;
};
template <>
struct ElementOf<Dtype::f32> {
  using Storage = std::uint32_t;
};

/// Converts an element to binary32, exactly; NaN stays NaN. Ignores higher `bits`.
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

/// Calls take() for the elements of a word of memory; take_vector(): of 16 bytes.
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

/// Calls take() with the bits of every element of this thread (for 16-bit elements, higher bits are
/// undefined). Thread `first` of `threads` processes every threads-th vector of 16 bytes, starting
/// from its own, counted from the tensor's beginning regardless of alignment, so the order of sums
/// does not depend on the alignment. Thread 0 also processes the remainder at the end.
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
      uint4 batch[kBatch];  // in registers: all loads are issued before the first is used
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

// Reductions over a warp: every lane calls, every lane receives the result.

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

/// Sum over a block of kThreads threads in fixed order; all threads call, thread 0 receives the
/// result. `room`: shared memory, one number per warp, not used by other threads.
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
