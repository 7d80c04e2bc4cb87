// SPDX-License-Identifier: Apache-2.0
// Counts pairs of weight and update on a device: common pairs in binary32 arithmetic, the others
// exactly; distributions in shared memory for the frequent binades. ../count/README.md.
#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/cuda_elements.hpp"
#include "halfscope/table/update/pair_fast.hpp"
#include "halfscope/table/update/update_kernels.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet.
constexpr unsigned kThreads = 256, kMostBlocks = 1024;
constexpr std::int64_t kPerThread = 16;  ///< pairs per thread before more blocks are used
/// Limit of one block's 32-bit counts.
constexpr std::int64_t kMostPerBlock = std::int64_t{1} << 31;

// The binades with bins in shared memory; row 0 is for zero weights.
constexpr int kWindowWeight = -30, kWindowUpdate = -56;
constexpr unsigned kWindowRows = 41, kWindowColumns = 64;

struct UpdateRoom {
  unsigned cells[kWindowRows][kWindowColumns][2][2];
  unsigned errors[kErrors];
};

/// Converts an element to binary32, exactly.
__device__ float element(const DeviceTensor& t, std::int64_t i) {
  const auto* const narrow = static_cast<const std::uint16_t*>(t.data);
  unsigned bits = 0;
  switch (t.dtype) {
    case Dtype::f16: bits = widened<Dtype::f16>(narrow[i]); break;
    case Dtype::bf16: bits = widened<Dtype::bf16>(narrow[i]); break;
    default: bits = static_cast<const unsigned*>(t.data)[i]; break;
  }
  return fast::number_of(bits);
}

/// One thread's PairCounts.
struct PairTally {
  unsigned zero = 0, nonfinite = 0, rule = 0;
  unsigned half[kOutcomes] = {}, fused[kOutcomes] = {};

  __device__ void add(const PairOutcome& pair) {
    rule += pair.rule ? 1 : 0;
    for (unsigned k = 0; k < kOutcomes; ++k) {
      half[k] += static_cast<unsigned>(pair.half) == k ? 1 : 0;
      fused[k] += static_cast<unsigned>(pair.fused) == k ? 1 : 0;
    }
  }
};

template <class W>
__device__ PairOutcome pair_outcome(std::uint16_t w16, float u) {
  const float w = W::widened(w16);
  if (fast::is_common(w, u)) return fast::outcome<W>(w, u);
  return outcome_of(W::kFormat, w16, recorded_update(kBinary32, fast::bits_of(u)));
}

__device__ void add_bins(const PairOutcome& pair, WeightBinades binades, UpdateRoom& room,
                         const UpdateWork& work) {
  const bool zero = pair.weight_binade == kNoBinade;
  const int less = zero ? 0 : pair.update_binade - pair.weight_binade - pair.ratio;
  const int lost = pair.lost() ? 1 : 0;
  const auto row = zero ? 0 : static_cast<unsigned>(pair.weight_binade - kWindowWeight + 1);
  const auto column = static_cast<unsigned>(pair.update_binade - kWindowUpdate);
  if ((zero || row - 1 < kWindowRows - 1) && column < kWindowColumns) {
    atomicAdd(&room.cells[row][column][less][lost], 1u);
  } else {
    const int all_row = zero ? 0 : pair.weight_binade - binades.first + 1;
    const int all_column = pair.update_binade - kFirstUpdateBinade;
    atomicAdd(&work.cells[all_row * kUpdateBinades + all_column].pairs[less][lost], 1ull);
  }
  if (pair.error != kNoBinade) atomicAdd(&room.errors[pair.error - kFirstError], 1u);
}

__device__ void clear(UpdateRoom& room) {
  auto* const words = reinterpret_cast<unsigned*>(&room);
  for (unsigned i = threadIdx.x; i < sizeof room / sizeof *words; i += kThreads) words[i] = 0;
}

__device__ void add_count(unsigned long long* to, unsigned n) {
  if (n != 0) atomicAdd(to, static_cast<unsigned long long>(n));
}

/// Adds the block's bins to the device's.
__device__ void flush(const UpdateRoom& room, WeightBinades binades, const UpdateWork& work) {
  for (unsigned i = threadIdx.x; i < kWindowRows * kWindowColumns; i += kThreads) {
    const unsigned row = i / kWindowColumns, column = i % kWindowColumns;
    const int weight = kWindowWeight + static_cast<int>(row) - 1;
    const int all_row = row == 0 ? 0 : weight - binades.first + 1;
    const int all_column = kWindowUpdate + static_cast<int>(column) - kFirstUpdateBinade;
    for (int k = 0; k < 4; ++k) {
      const unsigned n = room.cells[row][column][k / 2][k % 2];
      if (n == 0) continue;  // rows below the format's first are empty
      CellCounts& cell = work.cells[all_row * kUpdateBinades + all_column];
      add_count(&cell.pairs[k / 2][k % 2], n);
    }
  }
  for (unsigned i = threadIdx.x; i < kErrors; i += kThreads) {
    add_count(&work.errors[i], room.errors[i]);
  }
}

__device__ void add_over_warp(unsigned long long* to, unsigned mine) {
  const unsigned n = over_warp(mine, Sum());
  if (threadIdx.x % kLanes == 0) add_count(to, n);
}

template <class W>
__global__ void __launch_bounds__(kThreads)
    count_pairs_of(DeviceTensor weights, DeviceTensor updates, UpdateWork work) {
  __shared__ UpdateRoom room;
  const WeightBinades binades = weight_binades(W::kFormat);
  const bool distributions = work.cells != nullptr;
  if (distributions) clear(room);
  __syncthreads();
  PairTally tally;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < weights.count; i += threads) {
    const std::uint16_t w16 = W::narrowed(element(weights, i));
    const float u = element(updates, i);
    const bool finite_weight = (w16 & W::kFormat.magnitude_mask()) <= W::kFormat.largest_finite();
    if (!finite_weight || fast::magnitude_of(u) >= kInfinityBits) {
      ++tally.nonfinite;
    } else if (fast::magnitude_of(u) == 0) {
      ++tally.zero;
    } else {
      const PairOutcome pair = pair_outcome<W>(w16, u);
      tally.add(pair);
      if (distributions) add_bins(pair, binades, room, work);
    }
  }
  add_over_warp(&work.counts->zero, tally.zero);
  add_over_warp(&work.counts->nonfinite, tally.nonfinite);
  add_over_warp(&work.counts->rule, tally.rule);
  for (unsigned k = 0; k < kOutcomes; ++k) {
    add_over_warp(&work.counts->half[k], tally.half[k]);
    add_over_warp(&work.counts->fused[k], tally.fused[k]);
  }
  __syncthreads();
  if (distributions) flush(room, binades, work);
}

unsigned blocks_for(std::int64_t count) {
  const std::int64_t wanted = (count + kThreads * kPerThread - 1) / (kThreads * kPerThread);
  const std::int64_t blocks = wanted < kMostBlocks ? wanted : kMostBlocks;
  const std::int64_t needed = count / kMostPerBlock + 1;
  return static_cast<unsigned>(count == 0 ? 0 : blocks < needed ? needed : blocks);
}

}  // namespace

void count_pairs(const DeviceTensor& weights, const DeviceTensor& updates, Format f,
                 const UpdateWork& work, cudaStream_t stream) {
  const auto kernel =
      f == kBfloat16 ? count_pairs_of<fast::Bfloat16> : count_pairs_of<fast::Binary16>;
  launch("count_pairs", kernel, {blocks_for(weights.count), kThreads, 0}, stream, weights, updates,
         work);
}

}  // namespace halfscope::cuda
