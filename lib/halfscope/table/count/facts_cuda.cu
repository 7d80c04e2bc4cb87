// SPDX-License-Identifier: Apache-2.0
// The largest magnitude and the sum of squares of many tensors. Every part has a result in pinned
// memory; the host joins them.
#include <algorithm>
#include <cmath>

#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

// Not tuned yet. The number of blocks decides only the speed.
constexpr int kBatch = 4;  ///< vectors of 16 bytes that a thread loads at a time
constexpr unsigned kThreads = 256, kElements = 1u << 16;
constexpr int kBlocks = 4;  ///< on a processor: 57 registers a thread

/// The result of a part.
struct PartFacts {
  double sum_squares;
  unsigned largest;  ///< magnitude as binary32, may be infinity
  unsigned nan;
};

template <Dtype kDtype>
struct FactsOf {
  unsigned largest = 0, nan = 0;
  double sum_squares = 0;

  __device__ void operator()(unsigned element) {
    const unsigned magnitude = widened<kDtype>(element) & kMagnitude;
    const bool is_nan = magnitude > kInfinityBits;
    nan |= is_nan ? 1u : 0u;
    if (!is_nan && largest < magnitude) largest = magnitude;
    const unsigned finite = magnitude < kInfinityBits ? magnitude : 0;
    const double x = halfscope::detail::bit_cast<float>(finite);
    sum_squares = __fma_rn(x, x, sum_squares);  // x * x is exact
  }
};

struct FactsRoom {
  Slice slice;
  unsigned largest, nan;
  PartSums sums[kThreads / kLanes];
};

template <Dtype kDtype>
__device__ void facts_of_run(const Slice& slice, const Run& run, const Work<Slice>& work,
                             FactsRoom& room, PartFacts* out) {
  const auto* const elements = static_cast<const typename ElementOf<kDtype>::Storage*>(slice.data);
  for (unsigned part = run.first; part < run.end; ++part) {
    FactsOf<kDtype> mine;
    if (threadIdx.x == 0) room.largest = room.nan = 0;
    __syncthreads();
    const PartRange range = range_of(work, slice, part);
    for_each_element<kDtype, kBatch>(elements + range.first, range.count, threadIdx.x, kThreads,
                                     mine);
    const unsigned largest = over_warp(mine.largest, Largest());
    const unsigned nan = over_warp(mine.nan, Or());
    if (threadIdx.x % kLanes == 0) {
      atomicMax(&room.largest, largest);
      atomicOr(&room.nan, nan);
    }
    const double sum = sums_over_block<kThreads>(0, mine.sum_squares, room.sums).sum_squares;
    if (threadIdx.x == 0) out[slice.first_part + part] = {sum, room.largest, room.nan};
  }
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    facts_of_each_part(Work<Slice> work, PartFacts* out) {
  __shared__ FactsRoom room;
  for_each_run(work, room.slice, [&](const Slice& slice, const Run& run) {
    switch (slice.dtype) {
      case Dtype::f16: facts_of_run<Dtype::f16>(slice, run, work, room, out); break;
      case Dtype::bf16: facts_of_run<Dtype::bf16>(slice, run, work, room, out); break;
      default: facts_of_run<Dtype::f32>(slice, run, work, room, out); break;
    }
  });
}

}  // namespace

struct FactsCount::State {
  std::size_t tensors;
  std::vector<std::size_t> tensor_of_part;
  const PartFacts* facts = nullptr;
  ChunkedMemory pinned = pinned_memory();
  Completion completion;

  State(std::size_t count, cudaStream_t stream) : tensors(count), completion(stream) {}
};

FactsCount::FactsCount(std::span<const DeviceTensor> tensors, cudaStream_t stream)
    : state_(std::make_unique<State>(tensors.size(), stream)) {
  WorkList<Slice> list(kElements);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require_device_tensor(tensors[i], "FactsCount");
    for_each_slice(tensors[i], Slice::kMost, [&](const Slice& slice) { list.add(slice); });
    state_->tensor_of_part.resize(list.parts(), i);
  }
  auto* const facts = state_->pinned.take<PartFacts>(list.parts());
  state_->facts = facts;
  if (list.parts() != 0) {
    const unsigned most = resident_blocks(kBlocks);
    launch("facts_of_parts", facts_of_each_part, {list.blocks(most), kThreads, 0}, stream,
           list.write(state_->pinned, most), facts);
  }
  state_->completion.mark();
}

FactsCount::FactsCount(FactsCount&&) noexcept = default;
FactsCount::~FactsCount() = default;

std::vector<GradientSums> FactsCount::get() {
  state_->completion.wait();
  std::vector<GradientSums> out(state_->tensors);
  for (std::size_t i = 0; i < state_->tensor_of_part.size(); ++i) {
    GradientSums& sums = out[state_->tensor_of_part[i]];
    const PartFacts& part = state_->facts[i];
    const double largest = halfscope::detail::bit_cast<float>(part.largest);
    sums.nan |= part.nan != 0;
    sums.infinity |= std::isinf(largest);
    sums.max_abs = std::max(sums.max_abs, largest);
    sums.sum_squares += part.sum_squares;
  }
  return out;
}

}  // namespace halfscope::cuda
