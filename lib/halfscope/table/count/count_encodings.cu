// SPDX-License-Identifier: Apache-2.0
// Tables of large 16-bit tensors: a count for every encoding, from which the block that completes a
// slice computes rows, extremes, bits and sums. See README.md in this folder, "On the GPU".
#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/count_seen.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet. One block fits on a processor.
constexpr int kBatch = 2;  ///< vectors of 16 bytes that a thread loads at a time
constexpr unsigned kThreads = 1024;

// A word of shared memory, a pair, counts both signs of a magnitude: the positive one in its lower
// half, the negative one in its upper half. A half that wraps around adds 2^16 to the encoding's
// count in device memory. Zeros, often most of an activation, have a pair for each lane of a warp:
// lanes with one pair would wait for each other.

constexpr unsigned kMagnitudes = kEncodings / 2, kPairs = kMagnitudes + kLanes, kHalf = 1u << 16;
constexpr std::size_t kShared = sizeof(unsigned) * kPairs;

struct EncodingCounter {
  unsigned* pairs;      ///< in shared memory
  unsigned* encodings;  ///< in device memory

  /// Adds eight elements. No addition waits for the result of another.
  __device__ void take_vector(const uint4& vector) {
    const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
    unsigned at[8], ones[8], before[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const unsigned element = words[i / 2] >> 16 * (i % 2);
      at[i] = pair_of(element);
      ones[i] = one_of(element);
      before[i] = atomicAdd(&pairs[at[i]], ones[i]);
    }
    bool wrapped = false;
#pragma unroll
    for (int i = 0; i < 8; ++i) wrapped |= wraps(before[i] + ones[i], ones[i]);
    if (!wrapped) return;
    for (int i = 0; i < 8; ++i) {
      if (wraps(before[i] + ones[i], ones[i])) carry(at[i], ones[i], before[i] + ones[i]);
    }
  }
  __device__ void operator()(unsigned element) {
    const unsigned at = pair_of(element), one = one_of(element);
    const unsigned now = atomicAdd(&pairs[at], one) + one;
    if (wraps(now, one)) carry(at, one, now);
  }

 private:
  static __device__ unsigned pair_of(unsigned element) {
    const unsigned magnitude = element % kMagnitudes;
    return magnitude == 0 ? kMagnitudes + threadIdx.x % kLanes : magnitude;
  }
  /// Returns 1 in the half of the element's sign.
  static __device__ unsigned one_of(unsigned element) { return 1u << (element >> 11 & 16); }
  static __device__ bool wraps(unsigned now, unsigned one) {
    return (now & ((one << 16) - one)) == 0;
  }

  /// Called when a half wrapped around. The lower half's carry was added to the upper half: it is
  /// taken back, and what that did to the upper half's own wraps is undone with it.
  __device__ __noinline__ void carry(unsigned at, unsigned one, unsigned now) {
    unsigned* const positive = encodings + (at < kMagnitudes ? at : 0);
    unsigned* const negative = positive + kMagnitudes;
    if (one != 1) {
      atomicAdd(negative, kHalf);
      return;
    }
    atomicAdd(positive, kHalf);
    if (now >> 16 == 0) atomicAdd(negative, kHalf);
    const unsigned before = atomicAdd(&pairs[at], 0 - kHalf);
    if (before >> 16 == 0) atomicAdd(negative, 0 - kHalf);
  }
};

struct EncodingRoom {
  TableSlice slice;
  Extras extras;
  PartSums sums[kThreads / kLanes];
  unsigned range[2], completes;
};

/// Moves the block's counts to the slice's.
__device__ void flush(unsigned* pairs, unsigned* encodings) {
  for (unsigned i = threadIdx.x; i < kPairs; i += kThreads) {
    const unsigned pair = pairs[i];
    unsigned* const to = encodings + (i < kMagnitudes ? i : 0);
    pairs[i] = 0;
    add_count(to, pair % kHalf);
    add_count(to + kMagnitudes, pair / kHalf);
  }
}

/// Adds neighbouring magnitudes to rows in shared memory: one atomic operation for those of a
/// segment.
struct RowAdder {
  unsigned* segment = nullptr;
  unsigned* negative = nullptr;
  unsigned count = 0, negatives = 0;

  __device__ void add(RowCounts& row, unsigned to, unsigned n, unsigned of_negative) {
    if (segment != &row.segments[to]) {
      finish();
      segment = &row.segments[to];
      negative = &row.negative;
    }
    count += n;
    negatives += of_negative;
  }
  __device__ void finish() {
    if (segment == nullptr) return;
    add_count(segment, count);
    add_count(negative, negatives);
    count = negatives = 0;
  }
};

/// Computes a table from the counts of all encodings. A thread has neighbouring magnitudes.
template <Dtype kDtype>
struct Folder {
  const TableSlice& slice;
  const CutFractions& cuts;
  RowCounts* rows;  ///< in shared memory, zero
  Extras& extras;
  Seen seen = {};
  RowAdder adder = {};
  double sum = 0, sum_squares = 0;

  __device__ void add(unsigned magnitude, unsigned positive, unsigned negative) {
    const unsigned n = positive + negative, bits = widened<kDtype>(magnitude);
    if (n == 0) return;
    if (bits == 0 || bits >= kInfinityBits) return add_special(bits, n, negative);
    const Normalised x = normalised(bits);
    const unsigned segment = cuts.segment_of_entry(segment_entry(x.significand));
    adder.add(rows[x.row - slice.range.first], segment, n, negative);
    if (seen.largest < bits) seen.largest = bits;
    if (seen.smallest_less_one > bits - 1) seen.smallest_less_one = bits - 1;
    seen.significands |= x.significand;
    const unsigned low = lowest_bit(x);
    if (seen.lowest > low) seen.lowest = low;
    const double value = halfscope::detail::bit_cast<float>(bits);
    sum += (static_cast<double>(positive) - static_cast<double>(negative)) * value;
    sum_squares += static_cast<double>(n) * (value * value);
  }
  __device__ void add_special(unsigned bits, unsigned n, unsigned negative) {
    if (bits > kInfinityBits) {
      atomicAdd(&extras.nan, n);
      return;
    }
    add_count(bits == 0 ? &extras.zero : &extras.infinity, n);
    add_count(bits == 0 ? &extras.negative_zero : &extras.negative_infinity, negative);
  }
};

template <Dtype kDtype>
__device__ void fold(const unsigned* encodings, unsigned* rows, EncodingRoom& room,
                     const CountWork& work, SliceResult& result) {
  constexpr unsigned kEach = kMagnitudes / kThreads;
  Folder<kDtype> folder = {room.slice, work.cuts, reinterpret_cast<RowCounts*>(rows), room.extras};
  const unsigned first = threadIdx.x * kEach;
  for (unsigned i = first; i < first + kEach; i += 4) {
    const auto load = [&](unsigned at) {
      return __ldcg(reinterpret_cast<const uint4*>(encodings + at));
    };
    const uint4 p = load(i), n = load(kMagnitudes + i);
    folder.add(i, p.x, n.x);
    folder.add(i + 1, p.y, n.y);
    folder.add(i + 2, p.z, n.z);
    folder.add(i + 3, p.w, n.w);
  }
  folder.adder.finish();
  join_seen(folder.seen, room.extras);
  const PartSums sums = sums_over_block<kThreads>(folder.sum, folder.sum_squares, room.sums);
  if (threadIdx.x == 0) result.sums = sums;
}

/// Writes the result of a complete slice. rows: the block's pairs, all zero; zero again at the end.
__device__ void deliver_encodings(const unsigned* encodings, unsigned* rows, unsigned item,
                                  EncodingRoom& room, const CountWork& work) {
  const auto* const extras = reinterpret_cast<unsigned*>(&room.extras);
  if (threadIdx.x < kExtraWords) reinterpret_cast<unsigned*>(&room.extras)[threadIdx.x] = 0;
  __syncthreads();
  const auto fold_slice = room.slice.dtype == Dtype::f16 ? fold<Dtype::f16> : fold<Dtype::bf16>;
  fold_slice(encodings, rows, room, work, work.results[item]);
  deliver(
      room.slice, [&](unsigned i) { return rows[i]; }, [&](unsigned i) { return extras[i]; },
      room.range, work.results[item], work.result_rows);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < room.slice.range.count * kRowWords; i += kThreads) rows[i] = 0;
}

__global__ void __launch_bounds__(kThreads) count_each_encoding(CountWork work) {
  __shared__ EncodingRoom room;
  auto* const pairs = dynamic_shared<unsigned>();
  for (unsigned i = threadIdx.x; i < kPairs; i += kThreads) pairs[i] = 0;
  for_each_run(work.work, room.slice, [&](const TableSlice& slice, const Run& run) {
    unsigned* const encodings = work.encodings + std::size_t{run.item} * kEncodings;
    EncodingCounter counter = {pairs, encodings};
    const std::uint64_t first = std::uint64_t{run.first} * work.work.part_elements;
    const std::uint64_t end = std::uint64_t{run.end} * work.work.part_elements;
    const std::uint64_t stop = end < slice.count ? end : slice.count;
    const auto* const elements = static_cast<const std::uint16_t*>(slice.data) + first;
    // f16 stands for both types: only the bits matter.
    for_each_element<Dtype::f16, kBatch>(elements, static_cast<std::int64_t>(stop - first),
                                         threadIdx.x, kThreads, counter);
    __syncthreads();
    flush(pairs, encodings);
    unsigned* const done = &work.extras[run.item].parts_done;
    if (completes(run, parts_of(slice.count, work.work.part_elements), done, &room.completes)) {
      deliver_encodings(encodings, pairs, run.item, room, work);
    }
  });
}

}  // namespace

void count_encodings(const WorkList<TableSlice>& list, CountWork work, ChunkedMemory& pinned,
                     cudaStream_t stream) {
  const unsigned most = resident_blocks(1);
  work.work = list.write(pinned, most);
  launch("count_encodings", count_each_encoding, {list.blocks(most), kThreads, kShared}, stream,
         work);
}

bool can_count_encodings() {
  const auto most = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  return kShared + sizeof(EncodingRoom) <= most;
}

}  // namespace halfscope::cuda
