// SPDX-License-Identifier: Apache-2.0
// Tables of large 16-bit tensors: a bin in shared memory for the magnitude of every encoding, so
// that extremes, bits and segments are computed from 32,768 counts instead of from every element.
// See README.md in this folder, "On the GPU".
#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_kernels.hpp"
#include "halfscope/table/count/count_seen.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet. The number of blocks is fixed (an H100's processors): sums are added in order.
constexpr int kBatch = 4;  ///< vectors of 16 bytes that a thread loads at a time
constexpr unsigned kEncodingThreads = 1024, kEncodingBlocks = 132;

// Negative elements are counted by row only. Each lane of a warp has its own bins, so that lanes do
// not wait for each other.

constexpr unsigned kMagnitudes = Encodings::kMagnitudes;
constexpr unsigned kFirstNegativeRow = 16;  ///< the least row of bfloat16
constexpr unsigned kNegativeBins = (kNanRow + 1 - kFirstNegativeRow) * kLanes;
constexpr std::size_t kEncodingShared = sizeof(unsigned) * (kMagnitudes + kNegativeBins);
/// Limit of one block's 32-bit counts.
constexpr std::int64_t kMostPerBlock = std::int64_t{1} << 31;

template <Dtype kDtype>
struct EncodingCounter {
  unsigned *magnitudes, *negatives;  ///< bins of this lane
  double sum = 0;

  __device__ void operator()(unsigned element) {
    atomicAdd(&magnitudes[element % kMagnitudes], 1u);
    const unsigned bits = widened<kDtype>(element), magnitude = bits & kMagnitude;
    sum += double{halfscope::detail::bit_cast<float>(magnitude < kInfinityBits ? bits : 0)};
    if (bits >> 31 == 0) return;
    unsigned row = (magnitude >> 23) + kFirstField;
    if (magnitude - kHidden > kInfinityBits - kHidden) row = other_row(magnitude);
    atomicAdd(&negatives[(row - kFirstNegativeRow) * kLanes], 1u);
  }

  /// Returns the row of a zero, a subnormal or a NaN.
  static __device__ unsigned other_row(unsigned magnitude) {
    if (magnitude > kInfinityBits) return kNanRow;
    return magnitude == 0 ? kZeroRow : normalised(magnitude).row;
  }
};

template <Dtype kDtype>
__global__ void __launch_bounds__(kEncodingThreads)
    count_all_encodings(const void* data, std::int64_t count, Encodings* encodings,
                        PartSums* sums) {
  __shared__ double room[kEncodingThreads / kLanes];
  auto* const magnitudes = dynamic_shared<unsigned>();
  unsigned* const negatives = magnitudes + kMagnitudes;
  for (unsigned i = threadIdx.x; i < kMagnitudes + kNegativeBins; i += kEncodingThreads) {
    magnitudes[i] = 0;
  }
  __syncthreads();
  EncodingCounter<kDtype> counter = {magnitudes, negatives + threadIdx.x % kLanes};
  const std::int64_t first = std::int64_t{blockIdx.x} * kEncodingThreads + threadIdx.x;
  for_each_element<kDtype, kBatch>(data, count, first, std::int64_t{gridDim.x} * kEncodingThreads,
                                   counter);
  const double sum = sum_over_block<kEncodingThreads>(counter.sum, room);
  if (threadIdx.x == 0) sums[blockIdx.x] = {sum, 0};
  for (unsigned i = threadIdx.x; i < kMagnitudes; i += kEncodingThreads) {
    add_count(&encodings->magnitudes[i], magnitudes[i]);
  }
  for (unsigned row = kFirstNegativeRow + threadIdx.x; row <= kNanRow; row += kEncodingThreads) {
    const unsigned* const lanes = negatives + (row - kFirstNegativeRow) * kLanes;
    Count n = 0;
    for (unsigned k = 0; k < kLanes; ++k) n += lanes[(k + row) % kLanes];
    add_count(&encodings->negatives[row], n);
  }
}

/// Adds a magnitude's count to the table; returns its part of the sum of squares.
template <Dtype kDtype>
__device__ double fold_magnitude(unsigned encoding, Count n, const CountWork& work,
                                 const Place& place, Extras& extras, Seen& seen) {
  const unsigned bits = widened<kDtype>(encoding);
  if (n == 0) return 0;
  if (bits == 0 || bits >= kInfinityBits) {
    add_count(bits == 0 ? &extras.zero : bits > kInfinityBits ? &extras.nan : &extras.infinity, n);
    return 0;
  }
  const Normalised x = normalised(bits);
  const unsigned segment = work.segments[segment_entry(x.significand)];
  add_count(&work.rows[place.rows + x.row - place.first_row].segments[segment], n);
  seen = {bits, bits - 1, x.significand, lowest_bit(x)};
  const double value = halfscope::detail::bit_cast<float>(bits);
  return static_cast<double>(n) * (value * value);
}

/// Adds the encodings of one tensor to its table and clears them for the next. Needs kMagnitudes /
/// kEncodingThreads blocks.
template <Dtype kDtype>
__global__ void __launch_bounds__(kEncodingThreads)
    fold_encodings(Encodings* encodings, CountWork work, unsigned tensor, PartSums* sums) {
  __shared__ unsigned room[4];
  __shared__ double sums_room[kEncodingThreads / kLanes];
  if (threadIdx.x < 4) room[threadIdx.x] = 0;
  __syncthreads();
  const Place place = work.places[tensor];
  Extras& extras = work.extras[tensor];
  const unsigned encoding = blockIdx.x * kEncodingThreads + threadIdx.x;
  const Count n = encodings->magnitudes[encoding];
  encodings->magnitudes[encoding] = 0;
  Seen seen;
  const double squares = fold_magnitude<kDtype>(encoding, n, work, place, extras, seen);
  join_seen(seen, room, extras);
  const double sum = sum_over_block<kEncodingThreads>(squares, sums_room);
  if (threadIdx.x == 0) sums[blockIdx.x] = {0, sum};
  const unsigned row = threadIdx.x;
  if (blockIdx.x != 0 || row > kNanRow) return;
  const Count negatives = encodings->negatives[row];
  encodings->negatives[row] = 0;
  if (negatives == 0 || row == kNanRow) return;
  Count* const to = row == kZeroRow      ? &extras.negative_zero
                    : row == kSpecialRow ? &extras.negative_infinity
                                         : &work.rows[place.rows + row - place.first_row].negative;
  add_count(to, negatives);
}

constexpr unsigned kFoldBlocks = kMagnitudes / kEncodingThreads;

unsigned blocks_for(std::int64_t count) {
  const std::int64_t needed = count / kMostPerBlock + 1;
  return needed > kEncodingBlocks ? static_cast<unsigned>(needed) : kEncodingBlocks;
}

template <Dtype kDtype>
void count_encodings_of(const DeviceTensor& tensor, unsigned index, const CountWork& work,
                        Encodings* encodings, PartSums* sums, cudaStream_t stream) {
  const unsigned blocks = blocks_for(tensor.count);
  launch("count_encodings", count_all_encodings<kDtype>,
         {blocks, kEncodingThreads, kEncodingShared}, stream, tensor.data, tensor.count, encodings,
         sums);
  launch("fold_encodings", fold_encodings<kDtype>, {kFoldBlocks, kEncodingThreads, 0}, stream,
         encodings, work, index, sums + blocks);
}

}  // namespace

std::size_t encoding_sums(std::int64_t count) { return blocks_for(count) + kFoldBlocks; }

void count_encodings(const DeviceTensor& tensor, unsigned index, const CountWork& work,
                     Encodings* encodings, PartSums* sums, cudaStream_t stream) {
  (tensor.dtype == Dtype::f16
       ? count_encodings_of<Dtype::f16>
       : count_encodings_of<Dtype::bf16>)(tensor, index, work, encodings, sums, stream);
}

}  // namespace halfscope::cuda
