// SPDX-License-Identifier: Apache-2.0
// The largest magnitude and the sum of squares of many tensors: one block of threads per part.
#include <algorithm>
#include <cmath>

#include "halfscope/device/launch.hpp"
#include "halfscope/device/round_trip.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "halfscope/table/count/cuda_elements.hpp"

namespace halfscope::cuda {
namespace {

constexpr int kBatch = 4;  ///< vectors of 16 bytes that a thread loads at a time; not tuned yet

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
    sum_squares += x * x;
  }
};

struct FactsRoom {
  unsigned largest, nan;
  double sums[kPartThreads / kLanes];
};

template <Dtype kDtype>
__device__ void sum_part(const Part& part, FactsRoom& room, PartFacts& out) {
  FactsOf<kDtype> mine;
  for_each_element<kDtype, kBatch>(part.data, part.count, threadIdx.x, kPartThreads, mine);
  const unsigned largest = over_warp(mine.largest, Largest());
  const unsigned nan = over_warp(mine.nan, Or());
  if (threadIdx.x % kLanes == 0) {
    atomicMax(&room.largest, largest);
    atomicOr(&room.nan, nan);
  }
  const double sum = sum_over_block<kPartThreads>(mine.sum_squares, room.sums);
  if (threadIdx.x == 0) out = {sum, room.largest, room.nan};
}

__global__ void __launch_bounds__(kPartThreads) sum_each_part(const Part* parts, PartFacts* out) {
  __shared__ FactsRoom room;
  if (threadIdx.x == 0) room.largest = room.nan = 0;
  __syncthreads();
  const Part part = parts[blockIdx.x];
  switch (part.dtype) {
    case Dtype::f16: sum_part<Dtype::f16>(part, room, out[blockIdx.x]); break;
    case Dtype::bf16: sum_part<Dtype::bf16>(part, room, out[blockIdx.x]); break;
    default: sum_part<Dtype::f32>(part, room, out[blockIdx.x]); break;
  }
}

std::vector<Part> all_parts(std::span<const DeviceTensor> tensors) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require_device_tensor(tensors[i], "FactsCount");
    append_parts(tensors[i], static_cast<unsigned>(i), parts);
  }
  return parts;
}

}  // namespace

struct FactsCount::State {
  std::size_t tensors;
  std::vector<Part> parts;
  RoundTrip trip;

  State(std::span<const DeviceTensor> list, cudaStream_t stream)
      : tensors(list.size()),
        parts(all_parts(list)),
        trip(parts.size() * sizeof(Part), parts.size() * sizeof(PartFacts), stream) {}
};

FactsCount::FactsCount(std::span<const DeviceTensor> tensors, cudaStream_t stream)
    : state_(std::make_unique<State>(tensors, stream)) {
  const std::vector<Part>& parts = state_->parts;
  std::copy(parts.begin(), parts.end(), state_->trip.outgoing<Part>());
  const DeviceMemory input(parts.size() * sizeof(Part), stream);
  const DeviceMemory output(parts.size() * sizeof(PartFacts), stream);
  state_->trip.send(input);
  launch("sum_each_part", sum_each_part, {static_cast<unsigned>(parts.size()), kPartThreads, 0},
         stream, input.as<const Part>(), output.as<PartFacts>());
  state_->trip.fetch(output);
}

FactsCount::FactsCount(FactsCount&&) noexcept = default;
FactsCount::~FactsCount() = default;

std::vector<GradientSums> FactsCount::get() {
  const auto* const facts = static_cast<const PartFacts*>(state_->trip.result());
  std::vector<GradientSums> out(state_->tensors);
  for (std::size_t i = 0; i < state_->parts.size(); ++i) {
    GradientSums& sums = out[state_->parts[i].tensor];
    const double largest = halfscope::detail::bit_cast<float>(facts[i].largest);
    sums.nan |= facts[i].nan != 0;
    sums.infinity |= std::isinf(largest);
    sums.max_abs = std::max(sums.max_abs, largest);
    sums.sum_squares += facts[i].sum_squares;
  }
  return out;
}

}  // namespace halfscope::cuda
