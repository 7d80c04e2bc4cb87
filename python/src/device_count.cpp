// SPDX-License-Identifier: Apache-2.0
// Counts PyTorch's tensors on the GPU that holds them, and copies numbers from it. Calls queue work
// on the stream that computes the tensors; only values() of a Later waits for it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "gathered.hpp"
#include "halfscope/device/pinned_pool.hpp"
#include "halfscope/device/runtime.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count_cuda.hpp"
#include "halfscope/table/count/element.hpp"
#include "torch_tensors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

constexpr std::size_t kMostWaiting = 8;  // pieces of one Gathered: each holds pinned memory

using Values = std::vector<double>;

/// Numbers that a GPU computes. values() waits for them; any thread may call it, any number of
/// times.
struct Later {
  std::function<Values()> get;

  Values values() const {
    nb::gil_scoped_release release;
    return get();
  }
};

/// A stream, given by its address, of a device that is current while this object lives.
class Stream {
 public:
  Stream(int device, std::uintptr_t address) : key_(device, address) {
    cuda::check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device) cuda::check(cudaSetDevice(device), "cudaSetDevice");
    keep_freed_memory(device);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (before_ != key_.first) cudaSetDevice(before_);
  }

  const std::pair<int, std::uintptr_t>& key() const { return key_; }
  cudaStream_t get() const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what PyTorch calls cuda_stream
    return reinterpret_cast<cudaStream_t>(key_.second);
  }

 private:
  /// The device's memory pool keeps at least 64 MiB of freed memory: else each wait would return
  /// the memory to the system, to be allocated again.
  static void keep_freed_memory(int device) {
    constexpr std::uint64_t kKept = std::uint64_t{1} << 26;
    static std::set<int> known;
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

  std::pair<int, std::uintptr_t> key_;
  int before_ = 0;
};

/// The tables of a step's tensors on one stream. Lists are added until finish().
class OpenCount {
 public:
  explicit OpenCount(cudaStream_t stream) : count_(std::in_place, stream) {}

  bool open() const { return open_; }
  /// Queues the counting of a list. Returns the index of its first result.
  std::size_t add(const std::vector<cuda::DeviceTensor>& tensors) { return count_->add(tensors); }
  void finish() {
    open_ = false;
    count_->finish();
  }
  /// Waits, and frees the memory. Called once.
  std::vector<std::pair<BinadeTable, Moments>> get() {
    open_ = false;
    std::vector<std::pair<BinadeTable, Moments>> out;
    for (cuda::TensorFacts& facts : count_->get()) {
      out.emplace_back(std::move(facts.table), facts.moments);
    }
    count_.reset();
    return out;
  }

 private:
  std::optional<cuda::TableCount> count_;
  bool open_ = true;
};

/// A count, and its results: counts.get() finishes it.
struct Counting {
  std::shared_ptr<OpenCount> count;
  Gathered::Counts results;

  explicit Counting(cudaStream_t stream)
      : count(std::make_shared<OpenCount>(stream)),
        results(std::async(std::launch::deferred, [count = count] { return count->get(); })) {}
};

using Countings = std::map<std::pair<int, std::uintptr_t>, Counting>;

/// The counts that are open, by stream. The GIL protects them.
Countings& open_counts() {
  static Countings& all = *new Countings;  // never destroyed: the device may be gone by then
  return all;
}

Counting& open_count(const Stream& stream) {
  const auto found = open_counts().find(stream.key());
  if (found != open_counts().end() && found->second.count->open()) return found->second;
  return open_counts().insert_or_assign(stream.key(), Counting(stream.get())).first->second;
}

/// Ends the counts of all streams: other threads may then wait for their results.
void finish_counts() {
  for (auto& [key, counting] : open_counts()) {
    if (counting.count->open()) counting.count->finish();
  }
  open_counts().clear();
}

Values values_of(const std::optional<double>& value) { return value ? Values{*value} : Values(); }

/// Tensors on one device, and their places in a list.
struct OnDevice {
  std::vector<cuda::DeviceTensor> tensors;
  std::vector<std::size_t> places;
};

/// Sorts the tensors that can be counted by the number of their device: those in C order on a GPU
/// that are not float64. The function `tensor_at` returns the tensor at a place below `count`.
template <class TensorAt>
std::map<int, OnDevice> by_device(std::size_t count, TensorAt tensor_at) {
  static const nb::object& get_device =
      *new nb::object(nb::steal(PyUnicode_InternFromString("get_device")));
  std::map<int, OnDevice> found;
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object tensor = tensor_at(i);
    const std::optional<TensorView> view = view_of_torch(tensor, Memory::cuda);
    if (!view || view->dtype == Dtype::f64) continue;
    OnDevice& there = found[nb::cast<int>(tensor.attr(get_device)())];
    there.tensors.push_back({view->dtype, view->data, static_cast<std::int64_t>(view->count)});
    there.places.push_back(i);
  }
  return found;
}

/// The stream that streams(device) returns the address of; empty if it returns None.
std::optional<Stream> stream_of(int device, const nb::callable& streams) {
  const nb::object address = streams(device);
  if (address.is_none()) return std::nullopt;
  return std::optional<Stream>(std::in_place, device, nb::cast<std::uintptr_t>(address));
}

/// Adds the piece (Gathered, tensor, computed), counted as results[index]. Returns a Later of its
/// largest magnitude, which has no value if the tensor has no elements.
nb::object add_piece(nb::handle piece, Dtype dtype, const Gathered::Counts& results,
                     std::size_t index) {
  nb::cast<Gathered&>(piece[0]).add_later(
      {{}, {}, dtype, dtype_of_torch(piece[2]), torch_shape(piece[1])}, results, index);
  return nb::cast(
      Later{[results, index] { return values_of(largest_in(results.get()[index].first)); }});
}

/// Queues the counting of `pieces`, tuples as add_piece() takes them, on the streams of their
/// devices. Returns a list with the result of add_piece() for each; None for those that by_device()
/// leaves out and where the device has no stream or not enough memory.
nb::list count_on_device(const nb::list& pieces, const nb::callable& streams) {
  nb::list largest;
  for (std::size_t i = 0; i < pieces.size(); ++i) largest.append(nb::none());
  const auto tensor_at = [&](std::size_t i) { return nb::object(pieces[i][1]); };
  for (const auto& [device, there] : by_device(pieces.size(), tensor_at)) {
    const std::optional<Stream> stream = stream_of(device, streams);
    if (!stream) continue;
    for (const std::size_t place : there.places) {
      auto& gathered = nb::cast<Gathered&>(pieces[place][0]);
      if (gathered.waiting() >= kMostWaiting) settled(gathered);
    }
    const Counting& counting = open_count(*stream);
    std::size_t first = 0;
    try {
      first = counting.count->add(there.tensors);
    } catch (const std::runtime_error&) {
      continue;
    }
    for (std::size_t i = 0; i < there.places.size(); ++i) {
      const std::size_t place = there.places[i];
      largest[place] =
          add_piece(pieces[place], there.tensors[i].dtype, counting.results, first + i);
    }
  }
  return largest;
}

Values largest_of(const std::vector<cuda::GradientSums>& all) {
  double largest = 0;
  for (const cuda::GradientSums& one : all) {
    if (one.nan) return {std::numeric_limits<double>::quiet_NaN()};
    largest = std::max(largest, one.max_abs);
  }
  return {largest};
}

/// Queues the search for the largest magnitude of the tensors of each device. Returns (a list with
/// a Later for each device; the tensors that by_device() leaves out or whose device has no stream
/// or not enough memory).
/// Tensors without elements have no magnitude.
nb::tuple largest_on_device(const nb::list& tensors, const nb::callable& streams) {
  nb::list largest, others;
  std::vector<bool> read(tensors.size());
  const auto tensor_at = [&](std::size_t i) { return nb::object(tensors[i]); };
  for (auto& [device, there] : by_device(tensors.size(), tensor_at)) {
    const std::optional<Stream> stream = stream_of(device, streams);
    if (!stream) continue;
    std::erase_if(there.tensors,
                  [](const cuda::DeviceTensor& tensor) { return tensor.count == 0; });
    std::shared_ptr<cuda::FactsCount> count;
    try {
      count = std::make_shared<cuda::FactsCount>(there.tensors, stream->get());
    } catch (const std::runtime_error&) {
      continue;
    }
    for (const std::size_t place : there.places) read[place] = true;
    if (there.tensors.empty()) continue;
    const std::shared_future<Values> result =
        std::async(std::launch::deferred, [count] { return largest_of(count->get()); });
    largest.append(nb::cast(Later{[result] { return result.get(); }}));
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read[i]) others.append(tensors[i]);
  }
  return nb::make_tuple(largest, others);
}

/// A number that is copied from a device into pinned memory.
class NumberCopy {
 public:
  NumberCopy(const TensorView& number, cudaStream_t stream) : dtype_(number.dtype) {
    cuda::check(
        cudaMemcpyAsync(memory_.as<void>(), number.data, number.bytes(), cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
    done_.emplace(stream);
  }
  NumberCopy(const NumberCopy&) = delete;
  NumberCopy& operator=(const NumberCopy&) = delete;
  ~NumberCopy() {  // the memory returns to its pool: no copy may be running
    try {
      done_->wait();
    } catch (const std::runtime_error&) {  // the device failed, so no copy is running
    }
  }

  double value() const {
    done_->wait();
    return to_double(format_of(dtype_), load({dtype_, memory_.as<std::byte>(), 1}, 0));
  }

 private:
  Dtype dtype_;
  cuda::PooledMemory memory_{sizeof(double)};
  std::optional<cuda::Event> done_;
};

/// Queues the copy of a number on the device with this stream. Returns a Later; None if the
/// tensor has not one element or a dtype without a table.
nb::object number_on_device(nb::handle number, int device, std::uintptr_t address) {
  const std::optional<TensorView> view = view_of_torch(number, Memory::cuda);
  if (!view || view->count != 1) return nb::none();
  const Stream stream(device, address);
  const auto copy = std::make_shared<NumberCopy>(*view, stream.get());
  return nb::cast(Later{[copy] { return Values{copy->value()}; }});
}

}  // namespace

void bind_device_count(nb::module_& module) {
  nb::class_<Later>(module, "Later").def("values", &Later::values);
  module.def("count_on_device", &count_on_device, "pieces"_a, "streams"_a);
  module.def("finish_counts", &finish_counts);
  module.def("largest_on_device", &largest_on_device, "tensors"_a, "streams"_a);
  module.def("number_on_device", &number_on_device, "number"_a, "device"_a, "stream"_a);
}

}  // namespace halfscope::python
