// SPDX-License-Identifier: Apache-2.0
// Access of kernels to their work and its elements, and reductions over a block. Device code;
// internal to table/.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "halfscope/device/launch.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/table/count/cuda_rows.hpp"

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

/// Calls take() for the elements of a word of memory; take_vector(): of 16 bytes, or
/// take.take_vector(), if there is one.
template <Dtype kDtype, class Take>
__device__ inline void take_word(unsigned word, Take& take) {
  take(word);
  if constexpr (kDtype != Dtype::f32) take(word >> 16);
}
template <Dtype kDtype, class Take>
__device__ inline void take_vector(const uint4& vector, Take& take) {
  if constexpr (requires { take.take_vector(vector); }) {
    take.take_vector(vector);
  } else {
    take_word<kDtype>(vector.x, take);
    take_word<kDtype>(vector.y, take);
    take_word<kDtype>(vector.z, take);
    take_word<kDtype>(vector.w, take);
  }
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

/// Sums over a block of kThreads threads in fixed order; all threads call, thread 0 receives the
/// results. `room`: shared memory, one element per warp.
template <unsigned kThreads>
__device__ inline PartSums sums_over_block(double sum, double sum_squares, PartSums* room) {
  const PartSums of_warp = {over_warp(sum, Sum()), over_warp(sum_squares, Sum())};
  if (threadIdx.x % kLanes == 0) room[threadIdx.x / kLanes] = of_warp;
  __syncthreads();
  PartSums all = {};
  if (threadIdx.x == 0) {
    for (unsigned warp = 0; warp < kThreads / kLanes; ++warp) {
      all.sum += room[warp].sum;
      all.sum_squares += room[warp].sum_squares;
    }
  }
  __syncthreads();  // the room may be used again
  return all;
}

/// A block's run of parts of one item; numbers count from the item's first part.
struct Run {
  unsigned item, first, end;
};

/// Calls visit(item, run) for every item that this block has parts of. All threads call. `shared`:
/// room for an item in shared memory; visit() must not begin with a write that others still read.
template <class Item, class Visit>
__device__ inline void for_each_run(const Work<Item>& work, Item& shared, const Visit& visit) {
  const auto first_of = [&](std::uint64_t block) {
    return static_cast<unsigned>(block * work.parts / gridDim.x);
  };
  unsigned part = first_of(blockIdx.x);
  const unsigned end = first_of(std::uint64_t{blockIdx.x} + 1);
  for (unsigned i = work.starts[blockIdx.x]; part < end; ++i) {
    __syncthreads();  // all threads are done with the item before
    if (threadIdx.x == 0) shared = work.items[i];
    __syncthreads();
    const unsigned behind = shared.first_part + parts_of(shared.count, work.part_elements);
    const unsigned stop = end < behind ? end : behind;
    visit(shared, Run{i, part - shared.first_part, stop - shared.first_part});
    part = stop;
  }
}

/// First element of a part, and the number of its elements.
struct PartRange {
  std::uint64_t first;
  unsigned count;
};
template <class Item>
__device__ inline PartRange range_of(const Work<Item>& work, const Item& item, unsigned part) {
  const std::uint64_t first = std::uint64_t{part} * work.part_elements;
  const std::uint64_t rest = item.count - first;
  return {first, rest < work.part_elements ? static_cast<unsigned>(rest) : work.part_elements};
}

/// Adds a block's run to the number of an item's parts that are done. Returns true, for all threads
/// of one block, when all are: that block sees what every block wrote for the item before, if it
/// reads by __ldcg(). `room`: a shared word.
__device__ inline bool completes(const Run& run, unsigned parts, unsigned* done, unsigned* room) {
  __syncthreads();
  if (threadIdx.x == 0) {  // the fences are for all threads, by way of the barriers
    const unsigned own = run.end - run.first;
    __threadfence();
    *room = atomicAdd(done, own) + own == parts ? 1 : 0;
    __threadfence();
  }
  __syncthreads();
  return *room != 0;
}

}  // namespace halfscope::cuda
