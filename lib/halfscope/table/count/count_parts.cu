// SPDX-License-Identifier: Apache-2.0
// Tables by parts: a block of threads counts a run of parts, with a bin in shared memory for every
// sign, row and segment. See README.md in this folder, "On the GPU".
#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/count_seen.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet. The number of blocks decides only the speed.
constexpr int kBatch = 2;  ///< vectors of 16 bytes that a thread loads at a time
constexpr unsigned kThreads = 256;
constexpr int kBlocks = 5;  ///< on a processor: 48 registers a thread

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
    sum_squares = __fma_rn(x, x, sum_squares);  // x * x is exact
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
  TableSlice slice;
  PartSums sums[kThreads / kLanes];
  unsigned range[2], completes;
};

/// Clears the bins, and writes the segment of each entry, four to a word.
__device__ void prepare(PartRoom& room, const CutFractions& cuts) {
  for (unsigned i = threadIdx.x; i < kBins; i += kThreads) room.bins[i] = 0;
  for (unsigned i = threadIdx.x; i < kSegmentEntries / 4; i += kThreads) {
    unsigned word = 0;
    for (unsigned k = 0; k < 4; ++k) word |= cuts.segment_of_entry(4 * i + k) << 8 * k;
    room.segments[i] = word;
  }
}

/// Moves one row of both signs from the bins to the slice's rows and extras.
__device__ void move_row(unsigned* bins, unsigned row, const TableSlice& slice, Extras& extras,
                         RowCounts* rows) {
  unsigned* const positive = bins + row * kSegments;
  unsigned* const negative = bins + negative_row(row) * kSegments;
  unsigned counts[kSegments], all = 0, negatives = 0;
  const unsigned first_negative = negative[0];
  for (unsigned s = 0; s < kSegments; ++s) {
    counts[s] = positive[s] + negative[s];
    all += counts[s];
    negatives += negative[s];
    positive[s] = negative[s] = 0;
  }
  if (all == 0) return;
  if (row == kZeroRow) {
    add_count(&extras.zero, all);
    add_count(&extras.negative_zero, negatives);
  } else if (row == kSpecialRow) {
    add_count(&extras.infinity, counts[0]);
    add_count(&extras.negative_infinity, first_negative);
    add_count(&extras.nan, all - counts[0]);
  } else {
    RowCounts& to = rows[slice.rows + row - slice.range.first];
    for (unsigned s = 0; s < kSegments; ++s) add_count(&to.segments[s], counts[s]);
    add_count(&to.negative, negatives);
  }
}

/// Counts a run of parts. When it returns, the bins hold the elements of this thread; others may
/// still count theirs.
template <Dtype kDtype>
__device__ void count_run(const TableSlice& slice, const Run& run, PartRoom& room,
                          const CountWork& work) {
  BinCounter<kDtype> counter = {room.bins, reinterpret_cast<const unsigned char*>(room.segments)};
  const auto* const elements = static_cast<const typename ElementOf<kDtype>::Storage*>(slice.data);
  for (unsigned part = run.first; part < run.end; ++part) {
    const PartRange range = range_of(work.work, slice, part);
    counter.sum = counter.sum_squares = 0;
    for_each_element<kDtype, kBatch>(elements + range.first, range.count, threadIdx.x, kThreads,
                                     counter);
    const PartSums sums = sums_over_block<kThreads>(counter.sum, counter.sum_squares, room.sums);
    if (threadIdx.x == 0) work.sums[slice.first_part + part] = sums;
  }
  join_seen(counter.seen, work.extras[run.item]);
}

/// Writes the result of a complete slice.
__device__ void deliver_slice(const TableSlice& slice, unsigned item, PartRoom& room,
                              const CountWork& work) {
  const auto* const rows = reinterpret_cast<const unsigned*>(work.rows + slice.rows);
  const auto* const extras = reinterpret_cast<const unsigned*>(work.extras + item);
  deliver(
      slice, [&](unsigned i) { return __ldcg(rows + i); },
      [&](unsigned i) { return __ldcg(extras + i); }, room.range, work.results[item],
      work.result_rows);
  PartSums mine = {};  // every kThreads-th part, in order
  for (unsigned part = threadIdx.x; part < parts_of(slice.count, work.work.part_elements);
       part += kThreads) {
    const auto* const of_part = &work.sums[slice.first_part + part];
    mine.sum += __ldcg(&of_part->sum);
    mine.sum_squares += __ldcg(&of_part->sum_squares);
  }
  const PartSums sums = sums_over_block<kThreads>(mine.sum, mine.sum_squares, room.sums);
  if (threadIdx.x == 0) work.results[item].sums = sums;
}

__global__ void __launch_bounds__(kThreads, kBlocks) count_each_run(CountWork work) {
  __shared__ PartRoom room;
  prepare(room, work.cuts);
  for_each_run(work.work, room.slice, [&](const TableSlice& slice, const Run& run) {
    switch (slice.dtype) {
      case Dtype::f16: count_run<Dtype::f16>(slice, run, room, work); break;
      case Dtype::bf16: count_run<Dtype::bf16>(slice, run, room, work); break;
      default: count_run<Dtype::f32>(slice, run, room, work); break;
    }
    __syncthreads();
    Extras& extras = work.extras[run.item];
    for (unsigned row = threadIdx.x; row < kRows; row += kThreads) {
      move_row(room.bins, row, slice, extras, work.rows);
    }
    if (completes(run, parts_of(slice.count, work.work.part_elements), &extras.parts_done,
                  &room.completes)) {
      deliver_slice(slice, run.item, room, work);
    }
  });
}

}  // namespace

void count_parts(const WorkList<TableSlice>& list, CountWork work, ChunkedMemory& pinned,
                 cudaStream_t stream) {
  const unsigned most = resident_blocks(kBlocks);
  work.work = list.write(pinned, most);
  launch("count_parts", count_each_run, {list.blocks(most), kThreads, 0}, stream, work);
}

}  // namespace halfscope::cuda
