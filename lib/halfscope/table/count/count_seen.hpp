// SPDX-License-Identifier: Apache-2.0
// Shared parts of the two counting kernels. Device code; internal to table/.
#pragma once

#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {

using Count = unsigned long long;

__device__ inline void add_count(Count* to, Count n) {
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

/// Combines the summaries of all threads of a block into the tensor's. `room`: four shared words,
/// set to zero and synchronised before.
__device__ inline void join_seen(const Seen& seen, unsigned* room, Extras& extras) {
  const unsigned largest = over_warp(seen.largest, Largest());
  const unsigned smallest = over_warp(~seen.smallest_less_one, Largest());
  const unsigned significands = over_warp(seen.significands, Or());
  const unsigned lowest = over_warp(~seen.lowest, Largest());
  if (threadIdx.x % kLanes == 0) {
    atomicMax(&room[0], largest);
    atomicMax(&room[1], smallest);
    atomicOr(&room[2], significands);
    atomicMax(&room[3], lowest);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicMax(&extras.largest, room[0]);
  atomicMax(&extras.smallest_inverted, room[1]);
  atomicOr(&extras.fractions, room[2]);
  atomicMax(&extras.lowest_inverted, room[3]);
}

}  // namespace halfscope::cuda
