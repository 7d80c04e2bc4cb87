// SPDX-License-Identifier: Apache-2.0
// Shared parts of the two counting kernels. Device code; internal to table/.
#pragma once

#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {

__device__ inline void add_count(unsigned* to, unsigned n) {
  if (n != 0) atomicAdd(to, n);
}

/// Summary of finite nonzero elements.
struct Seen {
  unsigned largest = 0, smallest_less_one = ~0u;
  unsigned significands = 0;  ///< or of fractions, subnormals normalised, and higher bits
  unsigned lowest = ~0u;      ///< exponent + kLowestBias of the lowest bit, for narrow significands
};

/// Row and significand of a nonzero finite magnitude; the significand's first bit is bit 23.
struct Normalised {
  unsigned row, significand;
};
__device__ inline Normalised normalised(unsigned finite) {
  if (finite >= kHidden) return {(finite >> 23) + kFirstField, finite};
  const auto lead = static_cast<unsigned>(halfscope::detail::bit_width(finite) - 1);
  return {lead, finite << (23 - lead)};
}
__device__ inline unsigned lowest_bit(const Normalised& x) {
  const unsigned fraction = x.significand | kHidden;
  const int zeros = halfscope::detail::bit_width(fraction & (0 - fraction)) - 1;
  return static_cast<unsigned>(exponent_of_row(x.row) + kLowestBias - 23 + zeros);
}

/// Adds a thread's summary to the slice's, which may be in shared or device memory. All threads of
/// a warp call.
__device__ inline void join_seen(const Seen& seen, Extras& extras) {
  const unsigned largest = over_warp(seen.largest, Largest());
  const unsigned smallest = over_warp(~seen.smallest_less_one, Largest());
  const unsigned significands = over_warp(seen.significands, Or());
  const unsigned lowest = over_warp(~seen.lowest, Largest());
  if (threadIdx.x % kLanes != 0) return;
  atomicMax(&extras.largest, largest);
  atomicMax(&extras.smallest_inverted, smallest);
  atomicOr(&extras.fractions, significands);
  atomicMax(&extras.lowest_inverted, lowest);
}

inline constexpr unsigned kRowWords = sizeof(RowCounts) / sizeof(unsigned);
inline constexpr unsigned kExtraWords = sizeof(Extras) / sizeof(unsigned);

/// Writes a complete slice's rows and extras to its result; all threads call. row_word(i),
/// extra_word(i): word i of the slice's rows and extras. room: two shared words.
template <class RowWord, class ExtraWord>
__device__ inline void deliver(const TableSlice& slice, const RowWord& row_word,
                               const ExtraWord& extra_word, unsigned* room, SliceResult& result,
                               RowCounts* result_rows) {
  if (threadIdx.x == 0) {
    room[0] = slice.range.count;
    room[1] = 0;
  }
  __syncthreads();
  for (unsigned row = threadIdx.x; row < slice.range.count; row += blockDim.x) {
    unsigned any = 0;
    for (unsigned s = 0; s < kSegments; ++s) any |= row_word(row * kRowWords + s);
    if (any == 0) continue;
    atomicMin(&room[0], row);
    atomicMax(&room[1], row + 1);
  }
  __syncthreads();
  const unsigned first = room[0] < room[1] ? room[0] : room[1], count = room[1] - first;
  auto* const words = reinterpret_cast<unsigned*>(result_rows + slice.rows);
  for (unsigned i = threadIdx.x; i < count * kRowWords; i += blockDim.x) {
    words[i] = row_word(first * kRowWords + i);
  }
  if (threadIdx.x < kExtraWords) {
    reinterpret_cast<unsigned*>(&result.extras)[threadIdx.x] = extra_word(threadIdx.x);
  }
  if (threadIdx.x != 0) return;
  result.first_row = slice.range.first + first;
  result.row_count = count;
}

}  // namespace halfscope::cuda
