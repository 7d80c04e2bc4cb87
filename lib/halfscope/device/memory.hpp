// SPDX-License-Identifier: Apache-2.0
// Memory for the work that is queued on one stream: zeroed memory of the device, and pinned memory
// that the device reads and writes itself, so that neither lists nor results need a copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "halfscope/device/pinned_pool.hpp"
#include "halfscope/device/runtime.hpp"

namespace halfscope::cuda {

/// Gives pieces of large chunks of memory, and frees them all together.
class ChunkedMemory {
 public:
  using Chunk = std::shared_ptr<std::byte>;

  /// make: returns a new chunk of `bytes` bytes. least: bytes of a chunk, unless a piece is larger.
  ChunkedMemory(std::size_t least, std::function<Chunk(std::size_t bytes)> make)
      : least_(least), make_(std::move(make)) {}

  /// Returns memory for `count` elements, aligned to 16 bytes; nullptr for none.
  template <class T>
  T* take(std::size_t count) {
    static_assert(alignof(T) <= kAlignment);
    const std::size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes == 0) return nullptr;
    if (bytes > size_ - used_) {
      const std::size_t size = std::max(bytes, least_);
      chunks_.push_back(make_(size));  // may throw: then everything stays as it was
      size_ = size;
      used_ = 0;
    }
    return reinterpret_cast<T*>(chunks_.back().get() + std::exchange(used_, used_ + bytes));
  }

 private:
  static constexpr std::size_t kAlignment = 16;
  std::size_t least_, size_ = 0, used_ = 0;
  std::function<Chunk(std::size_t)> make_;
  std::vector<Chunk> chunks_;
};

/// Device memory that is zero when the work queued next on the stream begins.
inline ChunkedMemory zeroed_memory(cudaStream_t stream) {
  return ChunkedMemory(std::size_t{4} << 20, [stream](std::size_t bytes) {
    const auto memory = std::make_shared<DeviceMemory>(bytes, stream);
    check(cudaMemsetAsync(memory->data(), 0, bytes, stream), "cudaMemsetAsync");
    return ChunkedMemory::Chunk(memory, memory->as<std::byte>());
  });
}

/// Pinned memory of the pool, which host and device address alike. It must not be freed before the
/// device's work on it has ended: see Completion.
inline ChunkedMemory pinned_memory() {
  return ChunkedMemory(std::size_t{64} << 10, [](std::size_t bytes) {
    const auto memory = std::make_shared<PooledMemory>(bytes);
    return ChunkedMemory::Chunk(memory, memory->as<std::byte>());
  });
}

/// The end of a stream's work. The destructor waits for it; so an object that is declared after the
/// memory of that work keeps the memory until then.
class Completion {
 public:
  explicit Completion(cudaStream_t stream) : stream_(stream) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  ~Completion() {
    if (!done_) {
      cudaStreamSynchronize(stream_);
      return;
    }
    try {
      done_->wait();
    } catch (const std::runtime_error&) {  // the device failed, so no work is running
    }
  }

  /// Ends the work: nothing that is queued from now on belongs to it. A second call does nothing.
  /// The stream's device must be the current one.
  void mark() {
    if (!done_) done_.emplace(stream_);
  }
  bool marked() const { return done_.has_value(); }
  /// Waits for the work before mark().
  void wait() const { done_->wait(); }

 private:
  cudaStream_t stream_;
  std::optional<Event> done_;
};

}  // namespace halfscope::cuda
