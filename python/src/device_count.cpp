// SPDX-License-Identifier: Apache-2.0
// Counts PyTorch's tensors on the GPU that holds them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "gathered.hpp"
#include "halfscope/device/runtime.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "torch_tensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

constexpr std::size_t kMostWaiting = 8;  // pieces of one Gathered: each holds pinned memory

using Counted = std::vector<std::pair<BinadeTable, Moments>>;

/// The largest magnitude of a tensor that is being counted.
struct LargestLater {
  Gathered::Counts counts;
  std::size_t index;

  /// Returns one value, or none if the tensor has no elements. Waits for the count.
  std::vector<double> values() const {
    nb::gil_scoped_release release;
    const std::optional<double> largest = largest_in(counts.get()[index].first);
    return largest ? std::vector{*largest} : std::vector<double>();
  }
};

cuda::DeviceTensor device_tensor(nb::handle tensor) {
  const std::optional<TensorView> view = view_of_torch(tensor, Memory::cuda);
  if (!view) throw nb::type_error("count_on_device: a tensor that is not in C order on a GPU");
  return {view->dtype, view->data, static_cast<std::int64_t>(view->count)};
}

Gathered::Counts begin_count(const std::vector<cuda::DeviceTensor>& tensors,
                             std::uintptr_t stream) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what PyTorch calls cuda_stream
  auto* const queue = reinterpret_cast<cudaStream_t>(stream);
  nb::gil_scoped_release release;  // it may have to wait for the GPU, for pinned memory
  auto count = std::make_unique<cuda::TableCount>(tensors, queue);
  return std::async(std::launch::deferred,
                    [count = std::move(count)]() mutable {
                      const auto once = std::move(count);  // frees its memory after the read
                      Counted out;
                      for (cuda::TensorFacts& facts : once->get()) {
                        out.emplace_back(std::move(facts.table), facts.moments);
                      }
                      return out;
                    })
      .share();
}

/// Makes the device current. Its memory pool keeps at least 64 MiB of freed memory: else each wait
/// would return the memory to the system, to be allocated again.
void use_device(int device) {
  constexpr std::uint64_t kKept = std::uint64_t{1} << 26;
  static std::set<int> known;
  cuda::check(cudaSetDevice(device), "cudaSetDevice");
  if (!known.insert(device).second) return;
  cudaMemPool_t pool{};
  cuda::check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  std::uint64_t kept = 0;
  cuda::check(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept),
              "cudaMemPoolGetAttribute");
  kept = std::max(kept, kKept);
  cuda::check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept),
              "cudaMemPoolSetAttribute");
}

/// `pieces` has tuples (Gathered, tensor, computed). Queues the counting on a stream of the device,
/// `stream` being its address, and adds the future result to each Gathered. Returns one
/// LargestLater for each piece.
nb::list count_on_device(const nb::list& pieces, int device, std::uintptr_t stream) {
  use_device(device);
  std::vector<cuda::DeviceTensor> tensors;
  for (const nb::handle piece : pieces) tensors.push_back(device_tensor(piece[1]));
  const Gathered::Counts counts = begin_count(tensors, stream);
  nb::list largest;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const nb::handle piece = pieces[i];
    auto& gathered = nb::cast<Gathered&>(piece[0]);
    if (gathered.waiting() == kMostWaiting) settled(gathered);
    gathered.add_later({{}, {}, tensors[i].dtype, dtype_of_torch(piece[2]), torch_shape(piece[1])},
                       counts, i);
    largest.append(nb::cast(LargestLater{counts, i}));
  }
  return largest;
}

}  // namespace

void bind_device_count(nb::module_& module) {
  nb::class_<LargestLater>(module, "LargestLater").def("values", &LargestLater::values);
  module.def("count_on_device", &count_on_device, "pieces"_a, "device"_a, "stream"_a);
}

}  // namespace halfscope::python
