// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime for host code: errors as exceptions, memory and events by RAII. Calls only queue
// work on a stream; the ones that wait say so.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace halfscope::cuda {

/// Throws std::runtime_error that names the call that failed.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, which the next launch would report again
  throw std::runtime_error(std::string("CUDA: ") + call + ": " + cudaGetErrorString(status));
}

/// Returns an empty string if a device can be used, else the reason: no driver, no device.
inline std::string why_no_device() {
  int count = 0;  // stays 0 without a driver
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return count > 0 ? "" : "no CUDA device";
}

/// Returns a number of the current device.
inline int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

/// Returns the number of blocks of threads that run at a time if `each` fit on a processor.
inline unsigned resident_blocks(int each) {
  return static_cast<unsigned>(each * attribute(cudaDevAttrMultiProcessorCount));
}

/// Uninitialised device memory of `bytes` bytes, allocated and freed in stream order.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes != 0) check(cudaMallocAsync(&data_, bytes, stream), "cudaMallocAsync");
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), stream_(other.stream_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

/// Pinned host memory: copies to and from the device run while the host continues.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) {
    check(cudaMallocHost(&data_, bytes == 0 ? 1 : bytes), "cudaMallocHost");
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { cudaFreeHost(data_); }

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// A point in a stream's work queue.
class Event {
 public:
  explicit Event(cudaStream_t stream) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    const cudaError_t status = cudaEventRecord(event_, stream);
    if (status != cudaSuccess) cudaEventDestroy(event_);
    check(status, "cudaEventRecord");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  /// Waits until the stream has done all work queued before the event.
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace halfscope::cuda
