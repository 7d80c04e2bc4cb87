// SPDX-License-Identifier: Apache-2.0
// To the device, and back without waiting: what is sent and what is fetched lies in pinned memory.
#pragma once

#include <cstddef>
#include <optional>

#include "halfscope/device/pinned_pool.hpp"
#include "halfscope/device/runtime.hpp"

namespace halfscope::cuda {

/// Places several arrays in one piece of memory.
class Layout {
 public:
  /// The offset of `count` elements of T.
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

/// Sends once and fetches once, on one stream.
class RoundTrip {
 public:
  RoundTrip(std::size_t sent, std::size_t fetched, cudaStream_t stream)
      : stream_(stream), sent_(sent), fetched_(fetched), to_(sent), from_(fetched) {}
  RoundTrip(const RoundTrip&) = delete;
  RoundTrip& operator=(const RoundTrip&) = delete;
  ~RoundTrip() {  // the memory is given back: nothing may be under way
    if (!done_) {
      cudaStreamSynchronize(stream_);
    } else {
      try {
        done_->wait();
      } catch (const std::runtime_error&) {  // the device failed, and nothing is under way
      }
    }
  }

  cudaStream_t stream() const { return stream_; }

  /// What will be sent: to be written before send().
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
  /// Waits for what was fetched.
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
