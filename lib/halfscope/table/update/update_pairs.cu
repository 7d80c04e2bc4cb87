// SPDX-License-Identifier: Apache-2.0
// Counts pairs of weight and update on a device: common pairs in binary32 arithmetic, the others
// exactly; distributions in shared memory for the frequent binades. ../count/README.md.
#include <type_traits>

#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/cuda_elements.hpp"
#include "halfscope/table/update/pair_fast.hpp"
#include "halfscope/table/update/update_kernels.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet. The number of blocks decides only the speed.
constexpr unsigned kThreads = 256;
constexpr int kBlocks = 4;      ///< on a processor: 64 registers a thread
constexpr unsigned kBatch = 2;  ///< quads of both tensors that a thread loads at a time

// The binades with bins in shared memory; row 0 is for zero weights.
constexpr int kWindowWeight = -30, kWindowUpdate = -56;
constexpr unsigned kWindowRows = 41, kWindowColumns = 64;

struct Bins {
  unsigned cells[kWindowRows][kWindowColumns][2][2];
  unsigned errors[kErrors];
};
struct NoBins {};

constexpr unsigned kCountWords = sizeof(PairCounts) / sizeof(unsigned);

template <bool kDistributions>
struct UpdateRoom {
  PairSlice slice;
  unsigned counts[kCountWords];
  std::conditional_t<kDistributions, Bins, NoBins> bins;
};

/// A part's elements of one tensor, read four at a time.
class Quads {
 public:
  __device__ Quads(Dtype dtype, const void* data, std::uint64_t first)
      : dtype_(dtype),
        width_(static_cast<unsigned>(width_of(dtype))),
        data_(static_cast<const unsigned char*>(data) + width_ * first),
        aligned_(reinterpret_cast<std::uintptr_t>(data_) % (4 * width_) == 0) {}

  /// The bits of four elements, as they lie in memory: in four words, or in two.
  __device__ uint4 bits(unsigned quad) const {
    const unsigned char* const at = data_ + std::uint64_t{quad} * 4 * width_;
    const auto* const words = reinterpret_cast<const unsigned*>(at);
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(at);
    if (width_ == 4) {
      if (aligned_) return __ldg(reinterpret_cast<const uint4*>(at));
      return {__ldg(words), __ldg(words + 1), __ldg(words + 2), __ldg(words + 3)};
    }
    if (aligned_) {
      const uint2 two = __ldg(reinterpret_cast<const uint2*>(at));
      return {two.x, two.y, 0, 0};
    }
    const auto pair = [&](unsigned i) {
      return __ldg(halves + i) | static_cast<unsigned>(__ldg(halves + i + 1)) << 16;
    };
    return {pair(0), pair(2), 0, 0};
  }
  __device__ float4 numbers(const uint4& bits) const {
    switch (dtype_) {
      case Dtype::f16: return narrow<Dtype::f16>(bits);
      case Dtype::bf16: return narrow<Dtype::bf16>(bits);
      default:
        return {fast::number_of(bits.x), fast::number_of(bits.y), fast::number_of(bits.z),
                fast::number_of(bits.w)};
    }
  }
  /// The number of one element, for those behind the last quad.
  __device__ float number(unsigned i) const {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(data_);
    const auto* const words = reinterpret_cast<const unsigned*>(data_);
    return numbers({width_ == 4 ? words[i] : halves[i], 0, 0, 0}).x;
  }

 private:
  template <Dtype kDtype>
  static __device__ float4 narrow(const uint4& bits) {
    const auto number = [](unsigned half) { return fast::number_of(widened<kDtype>(half)); };
    return {number(bits.x & 0xFFFF), number(bits.x >> 16), number(bits.y & 0xFFFF),
            number(bits.y >> 16)};
  }

  Dtype dtype_;
  unsigned width_;
  const unsigned char* data_;
  bool aligned_;
};

/// Counts of one thread's pairs of a part: fields of 8 bits.
struct PairTally {
  static constexpr unsigned kField = 8;
  static_assert(kPairElements / kThreads + 1 < 1u << kField);

  unsigned half = 0;   ///< fields in the order of Outcome, without overflows
  unsigned fused = 0;  ///< the same; the first is of the rule, since no recorded update underflows
  unsigned zero = 0, nonfinite = 0, half_overflow = 0, fused_overflow = 0;

  /// Adds a pair that does not overflow.
  __device__ void add(const PairOutcome& pair) {
    half += 1u << kField * static_cast<unsigned>(pair.half);
    fused += 1u << kField * static_cast<unsigned>(pair.fused);
    fused += pair.rule ? 1 : 0;
  }
  __device__ void add_any(const PairOutcome& pair) {
    if (pair.half == Outcome::overflow) ++half_overflow;
    if (pair.fused == Outcome::overflow) ++fused_overflow;
    const auto field = [](Outcome outcome) {
      return outcome == Outcome::overflow ? 0 : 1u << kField * static_cast<unsigned>(outcome);
    };
    half += field(pair.half);
    fused += field(pair.fused) + (pair.rule ? 1 : 0);
  }

  __device__ PairCounts counts() const {
    PairCounts out = {zero, nonfinite, fused % (1u << kField), {}, {}};
    for (unsigned k = 0; k < 4; ++k) {
      out.half[k] = half >> kField * k & 0xFF;
      out.fused[k] = k == 0 ? 0 : fused >> kField * k & 0xFF;
    }
    out.half[static_cast<unsigned>(Outcome::overflow)] = half_overflow;
    out.fused[static_cast<unsigned>(Outcome::overflow)] = fused_overflow;
    return out;
  }
};

/// Rare, and long: a call of its own leaves registers to the others.
template <class W>
__device__ __noinline__ PairOutcome exact_outcome(std::uint16_t w16, float u) {
  return outcome_of(W::kFormat, w16, recorded_update(kBinary32, fast::bits_of(u)));
}

/// A tensor's arrays in device memory.
struct Distributions {
  WeightBinades binades;
  CellCounts* cells;
  unsigned long long* errors;
};

__device__ void add_bins(const PairOutcome& pair, Bins& bins, const Distributions& all) {
  const bool zero = pair.weight_binade == kNoBinade;
  const int less = zero ? 0 : pair.update_binade - pair.weight_binade - pair.ratio;
  const int lost = pair.lost() ? 1 : 0;
  const auto row = zero ? 0 : static_cast<unsigned>(pair.weight_binade - kWindowWeight + 1);
  const auto column = static_cast<unsigned>(pair.update_binade - kWindowUpdate);
  if ((zero || row - 1 < kWindowRows - 1) && column < kWindowColumns) {
    atomicAdd(&bins.cells[row][column][less][lost], 1u);
  } else {
    const int all_row = zero ? 0 : pair.weight_binade - all.binades.first + 1;
    const int all_column = pair.update_binade - kFirstUpdateBinade;
    atomicAdd(&all.cells[all_row * kUpdateBinades + all_column].pairs[less][lost], 1ull);
  }
  if (pair.error != kNoBinade) atomicAdd(&bins.errors[pair.error - kFirstError], 1u);
}

__device__ void clear(Bins& bins) {
  auto* const words = reinterpret_cast<unsigned*>(&bins);
  for (unsigned i = threadIdx.x; i < sizeof bins / sizeof *words; i += kThreads) words[i] = 0;
}

__device__ void move_count(unsigned& from, unsigned long long* to) {
  if (from != 0) atomicAdd(to, static_cast<unsigned long long>(from));
  from = 0;
}

/// Moves the block's bins to the device's.
__device__ void flush(Bins& bins, const Distributions& all) {
  for (unsigned i = threadIdx.x; i < kWindowRows * kWindowColumns; i += kThreads) {
    const unsigned row = i / kWindowColumns, column = i % kWindowColumns;
    const int weight = kWindowWeight + static_cast<int>(row) - 1;
    const int all_row = row == 0 ? 0 : weight - all.binades.first + 1;
    const int all_column = kWindowUpdate + static_cast<int>(column) - kFirstUpdateBinade;
    for (int k = 0; k < 4; ++k) {
      unsigned& n = bins.cells[row][column][k / 2][k % 2];
      if (n == 0) continue;  // rows below the format's first are empty
      CellCounts& cell = all.cells[all_row * kUpdateBinades + all_column];
      move_count(n, &cell.pairs[k / 2][k % 2]);
    }
  }
  for (unsigned i = threadIdx.x; i < kErrors; i += kThreads) {
    move_count(bins.errors[i], &all.errors[i]);
  }
}

/// Counts pairs of one thread.
template <class W, bool kDistributions>
struct PairCounter {
  UpdateRoom<kDistributions>& room;
  const Distributions& all;
  PairTally tally = {};

  __device__ void operator()(float weight, float u) {
    const std::uint16_t w16 = W::narrowed(weight);
    const float w = W::widened(w16);
    if (!fast::is_common<W>(w, u)) return add_other(w16, u);
    const PairOutcome pair = fast::outcome<W>(w, u);
    tally.add(pair);
    if constexpr (kDistributions) add_bins(pair, room.bins, all);
  }
  __device__ void add_other(std::uint16_t w16, float u) {
    const bool finite_weight = (w16 & W::kFormat.magnitude_mask()) <= W::kFormat.largest_finite();
    if (!finite_weight || fast::magnitude_of(u) >= kInfinityBits) {
      ++tally.nonfinite;
    } else if (fast::magnitude_of(u) == 0) {
      ++tally.zero;
    } else {
      const PairOutcome pair = exact_outcome<W>(w16, u);
      tally.add_any(pair);
      if constexpr (kDistributions) add_bins(pair, room.bins, all);
    }
  }
  __device__ void take(const float4& w, const float4& u) {
    (*this)(w.x, u.x);
    (*this)(w.y, u.y);
    (*this)(w.z, u.z);
    (*this)(w.w, u.w);
  }
};

/// Counts this thread's pairs of a part of `count`.
template <class Counter>
__device__ void count_part(const Quads& weights, const Quads& updates, unsigned count,
                           Counter& counter) {
  const unsigned quads = count / 4;
  for (unsigned i = threadIdx.x; i < quads; i += kBatch * kThreads) {
    uint4 w[kBatch], u[kBatch];  // in registers: all loads are issued before the first is used
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k) {
      if (i + k * kThreads >= quads) continue;
      w[k] = weights.bits(i + k * kThreads);
      u[k] = updates.bits(i + k * kThreads);
    }
#pragma unroll
    for (unsigned k = 0; k < kBatch; ++k) {
      if (i + k * kThreads >= quads) continue;
      counter.take(weights.numbers(w[k]), updates.numbers(u[k]));
    }
  }
  const unsigned rest = 4 * quads + threadIdx.x;
  if (rest < count) counter(weights.number(rest), updates.number(rest));
}

/// Writes the sum of all threads' counts; all threads call.
__device__ void write_counts(const PairCounts& mine, unsigned* room, PairCounts& to) {
  const auto* const words = reinterpret_cast<const unsigned*>(&mine);
  if (threadIdx.x < kCountWords) room[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < kCountWords; ++k) {
    const unsigned n = over_warp(words[k], Sum());
    if (threadIdx.x % kLanes == 0) atomicAdd(&room[k], n);
  }
  __syncthreads();
  if (threadIdx.x < kCountWords) reinterpret_cast<unsigned*>(&to)[threadIdx.x] = room[threadIdx.x];
}

template <class W, bool kDistributions>
__global__ void __launch_bounds__(kThreads, kBlocks) count_pairs_of(UpdateWork work) {
  __shared__ UpdateRoom<kDistributions> room;
  constexpr WeightBinades kBinades = weight_binades(W::kFormat);
  if constexpr (kDistributions) clear(room.bins);
  for_each_run(work.work, room.slice, [&](const PairSlice& slice, const Run& run) {
    const Distributions all = {
        kBinades, work.cells + std::size_t{slice.tensor} * kBinades.rows * kUpdateBinades,
        work.errors + std::size_t{slice.tensor} * kErrors};
    for (unsigned part = run.first; part < run.end; ++part) {
      const PartRange range = range_of(work.work, slice, part);
      PairCounter<W, kDistributions> counter = {room, all};
      count_part(Quads(slice.weight_dtype, slice.weights, range.first),
                 Quads(slice.update_dtype, slice.updates, range.first), range.count, counter);
      write_counts(counter.tally.counts(), room.counts, work.parts[slice.first_part + part]);
      __syncthreads();  // the room is used again, and all bins are complete
    }
    if constexpr (kDistributions) flush(room.bins, all);
  });
}

}  // namespace

void count_pairs(const WorkList<PairSlice>& list, Format f, UpdateWork work, ChunkedMemory& pinned,
                 cudaStream_t stream) {
  const bool wide = f == kBfloat16, distributions = work.cells != nullptr;
  const auto kernel = wide ? (distributions ? count_pairs_of<fast::Bfloat16, true>
                                            : count_pairs_of<fast::Bfloat16, false>)
                           : (distributions ? count_pairs_of<fast::Binary16, true>
                                            : count_pairs_of<fast::Binary16, false>);
  if (list.parts() == 0) return;
  const unsigned most = resident_blocks(kBlocks);
  work.work = list.write(pinned, most);
  launch("count_pairs", kernel, {list.blocks(most), kThreads, 0}, stream, work);
}

}  // namespace halfscope::cuda
