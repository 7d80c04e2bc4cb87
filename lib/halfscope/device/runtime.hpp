// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime for host code: errors as exceptions, memory and events by RAII. Everything is
// queued on a stream; nothing here waits unless it says so.
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
  cudaGetLastError();  // or the next launch reports it again
  throw std::runtime_error(std::string("CUDA: ") + call + ": " + cudaGetErrorString(status));
}

/// Empty where a device can be used, else what is missing: no driver, no device.
inline std::string why_no_device() {
  int count = 0;  // left as it is where there is no driver
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return count > 0 ? "" : "no CUDA device";
}

/// Device memory of `bytes` bytes, allocated and freed in the order of a stream. Not set.
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

/// Host memory that copies can reach while the host goes on.
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

/// A point in a stream's work.
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

  /// Waits until the stream has come by.
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace halfscope::cuda
