// SPDX-License-Identifier: Apache-2.0
// Copies to the device and back that do not block the host: both ends are in pinned memory.
#pragma once

#include <cstddef>
#include <optional>

#include "halfscope/device/pinned_pool.hpp"
#include "halfscope/device/runtime.hpp"

namespace halfscope::cuda {

/// Computes the offsets of several arrays in one piece of memory.
class Layout {
 public:
  /// Appends `count` elements of T and returns their offset in bytes.
  template <class T>
  std::size_t add(std::size_t count) {
    static_assert(alignof(T) <= kAlignment);
    const std::size_t at = bytes_;
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 16;
  std::size_t bytes_ = 0;
};

template <class T>
T* at_offset(const void* memory, std::size_t offset) {
  return reinterpret_cast<T*>(const_cast<std::byte*>(static_cast<const std::byte*>(memory)) +
                              offset);
}

/// One copy to the device and one copy back, on one stream.
class RoundTrip {
 public:
  RoundTrip(std::size_t sent, std::size_t fetched, cudaStream_t stream)
      : stream_(stream), sent_(sent), fetched_(fetched), to_(sent), from_(fetched) {}
  RoundTrip(const RoundTrip&) = delete;
  RoundTrip& operator=(const RoundTrip&) = delete;
  ~RoundTrip() {  // pinned memory returns to the pool: no copy may be running
    if (!done_) {
      cudaStreamSynchronize(stream_);
    } else {
      try {
        done_->wait();
      } catch (const std::runtime_error&) {  // the device failed, so no copy is running
      }
    }
  }

  cudaStream_t stream() const { return stream_; }

  /// Buffer of the data to send; the caller fills it before send().
  template <class T>
  T* outgoing(std::size_t offset = 0) {
    return at_offset<T>(to_.as<void>(), offset);
  }
  void send(const DeviceMemory& to) {
    if (sent_ == 0) return;
    check(cudaMemcpyAsync(to.data(), to_.as<void>(), sent_, cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
  }
  void fetch(const DeviceMemory& from) {
    if (fetched_ != 0) {
      check(
          cudaMemcpyAsync(from_.as<void>(), from.data(), fetched_, cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
    }
    done_.emplace(stream_);
  }
  /// Waits for fetch() and returns the fetched data.
  const void* result() {
    done_->wait();
    return from_.as<void>();
  }

 private:
  cudaStream_t stream_;
  std::size_t sent_, fetched_;
  PooledMemory to_, from_;
  std::optional<Event> done_;
};

}  // namespace halfscope::cuda
