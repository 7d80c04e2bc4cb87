// SPDX-License-Identifier: Apache-2.0
// Tables by parts: a block of threads counts a part, with a bin in shared memory for every sign,
// row and segment. See README.md in this folder, "On the GPU".
#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/count_seen.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

constexpr int kBatch = 2;  ///< vectors of 16 bytes that a thread loads at a time; not tuned yet

// Rows of negative elements follow the rows of positive ones, in an order in which sign and
// exponent field together are an index.

constexpr unsigned kSigned = 256, kNegativeSubnormals = kRows + kSigned;
constexpr unsigned kBins = 2 * kRows * kSegments;
static_assert(kRows == kZeroRow + kSigned);

__device__ unsigned negative_row(unsigned row) {
  return row < kFirstField ? kNegativeSubnormals + row : row + kSigned;
}

template <Dtype kDtype>
struct BinCounter {
  unsigned* bins;
  const unsigned char* segments;
  Seen seen = {};
  unsigned look_below = ~0u;  ///< if magnitude - 1 is below this, look() must be called
  double sum = 0, sum_squares = 0;

  __device__ void operator()(unsigned element) {
    const unsigned bits = widened<kDtype>(element), magnitude = bits & kMagnitude;
    const unsigned finite = magnitude < kInfinityBits ? magnitude : 0;
    unsigned row = (bits >> 23) + kFirstField, fraction = bits, significand = finite;
    const unsigned less_one = finite - 1;  // for 0: the largest unsigned number
    if (less_one < look_below) {
      look(finite);
      if (finite < kHidden) {
        const Normalised x = normalised(finite);
        row = bits >> 31 != 0 ? negative_row(x.row) : x.row;
        fraction = significand = x.significand;
      }
    }
    atomicAdd(&bins[row * kSegments + segments[segment_entry(fraction)]], 1u);
    if (seen.largest < finite) seen.largest = finite;
    if (seen.smallest_less_one > less_one) seen.smallest_less_one = less_one;
    seen.significands |= significand;
    const double x = halfscope::detail::bit_cast<float>(finite | (bits & ~kMagnitude));
    sum += x;
    sum_squares += x * x;
  }

  /// Updates the lowest bit, and sets look_below so that only elements that may have a lower bit
  /// are examined: none if a significand is wide, since the bit is not used then; else elements
  /// less than ten binades above it.
  __device__ void look(unsigned finite) {
    constexpr unsigned kWide = (1u << (24 - kNarrowBits)) - 1, kReach = kNarrowBits - 1;
    constexpr unsigned kToField = kLowestBias - 127;
    const Normalised x = normalised(finite);
    look_below = kHidden - 1;
    if (((seen.significands | x.significand) & kWide) != 0) return;
    const unsigned low = lowest_bit(x);
    if (seen.lowest > low) seen.lowest = low;
    const unsigned end = seen.lowest + kReach;
    if (end > kToField + 1) look_below = ((end - kToField) << 23) - 1;
  }
};

struct PartRoom {
  unsigned bins[kBins];
  unsigned segments[kSegmentEntries / 4];
  unsigned seen[4];
  double sums[kPartThreads / kLanes], squares[kPartThreads / kLanes];
};

/// Adds one row of both signs to the tensor's rows and extras.
__device__ void add_row(const unsigned* bins, unsigned row, const Place& place, Extras& extras,
                        RowCounts* rows) {
  const unsigned* const positive = bins + row * kSegments;
  const unsigned* const negative = bins + negative_row(row) * kSegments;
  unsigned all = 0, negatives = 0;  // at most kPartElements
  for (unsigned s = 0; s < kSegments; ++s) {
    all += positive[s] + negative[s];
    negatives += negative[s];
  }
  if (all == 0) return;
  if (row == kZeroRow) {
    add_count(&extras.zero, all);
    add_count(&extras.negative_zero, negatives);
  } else if (row == kSpecialRow) {
    add_count(&extras.infinity, positive[0] + negative[0]);
    add_count(&extras.negative_infinity, negative[0]);
    add_count(&extras.nan, all - positive[0] - negative[0]);
  } else {
    RowCounts& to = rows[place.rows + row - place.first_row];
    for (unsigned s = 0; s < kSegments; ++s) add_count(&to.segments[s], positive[s] + negative[s]);
    add_count(&to.negative, negatives);
  }
}

/// Counts a part. When it returns, the bins include the elements of all threads.
template <Dtype kDtype>
__device__ void count_part(const Part& part, PartRoom& room, const CountWork& work,
                           PartSums& sums) {
  BinCounter<kDtype> counter = {room.bins, reinterpret_cast<const unsigned char*>(room.segments)};
  for_each_element<kDtype, kBatch>(part.data, part.count, threadIdx.x, kPartThreads, counter);
  join_seen(counter.seen, room.seen, work.extras[part.tensor]);
  const double sum = sum_over_block<kPartThreads>(counter.sum, room.sums);
  const double squares = sum_over_block<kPartThreads>(counter.sum_squares, room.squares);
  if (threadIdx.x == 0) sums = {sum, squares};
}

__global__ void __launch_bounds__(kPartThreads)
    count_each_part(const Part* parts, CountWork work, PartSums* sums) {
  __shared__ PartRoom room;
  for (unsigned i = threadIdx.x; i < kBins; i += kPartThreads) room.bins[i] = 0;
  for (unsigned i = threadIdx.x; i < kSegmentEntries / 4; i += kPartThreads) {
    room.segments[i] = reinterpret_cast<const unsigned*>(work.segments)[i];
  }
  if (threadIdx.x < 4) room.seen[threadIdx.x] = 0;
  __syncthreads();
  const Part part = parts[blockIdx.x];
  PartSums& own = sums[blockIdx.x];
  switch (part.dtype) {
    case Dtype::f16: count_part<Dtype::f16>(part, room, work, own); break;
    case Dtype::bf16: count_part<Dtype::bf16>(part, room, work, own); break;
    default: count_part<Dtype::f32>(part, room, work, own); break;
  }
  for (unsigned row = threadIdx.x; row < kRows; row += kPartThreads) {
    add_row(room.bins, row, work.places[part.tensor], work.extras[part.tensor], work.rows);
  }
}

}  // namespace

void count_parts(const Part* parts, std::size_t count, const CountWork& work, PartSums* sums,
                 cudaStream_t stream) {
  launch("count_parts", count_each_part, {static_cast<unsigned>(count), kPartThreads, 0}, stream,
         parts, work, sums);
}

}  // namespace halfscope::cuda
