// SPDX-License-Identifier: Apache-2.0
// A GPU with its stream, library handles and memory. The backend uses a single stream, so that
// cuBLAS returns the same bits every time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "halfscope/device/memory.hpp"
#include "sim/backend/cudnn/api.hpp"
#include "sim/backend/tensor.hpp"

namespace halfscope::sim::backend::cudnn {

class Device {
 public:
  /// Opens the first device. Throws std::runtime_error if there is none.
  explicit Device(const CudaLibraries& libraries);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t cudnn() const { return cudnn_; }
  cublasHandle_t cublas() const { return cublas_; }
  const CudaLibraries& libraries() const { return libraries_; }

  /// Throws std::runtime_error if `status` is an error; the message names the call.
  void check(cudnnStatus_t status, const char* call) const {
    backend::cudnn::check(libraries_.cudnn, status, call);
  }
  void check(cublasStatus_t status, const char* call) const {
    backend::cudnn::check(libraries_.cublas, status, call);
  }

  /// Returns device memory of at least `bytes` bytes, valid until the next call.
  void* workspace(std::size_t bytes);
  void wait() const;

  /// Copies `bytes` bytes to the device in stream order: fill(memory) writes them to pinned memory.
  /// Waits for nothing but the copy before.
  template <class Fill>
  void send(void* to, std::size_t bytes, const Fill& fill) {
    auto copy = std::make_unique<Copy>(bytes, stream_);
    fill(copy->memory.as<void>());
    cuda::check(
        cudaMemcpyAsync(to, copy->memory.as<void>(), bytes, cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync");
    copy->sent.mark();
    sent_ = std::move(copy);
  }

 private:
  /// A copy to the device. The destructor waits for its end.
  struct Copy {
    Copy(std::size_t bytes, cudaStream_t stream) : memory(bytes), sent(stream) {}
    cuda::PooledMemory memory;
    cuda::Completion sent;
  };

  const CudaLibraries& libraries_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  cuda::DeviceMemory cublas_workspace_, workspace_;
  std::size_t workspace_bytes_ = 0;
  std::unique_ptr<Copy> sent_;  ///< the last one
};

/// A tensor's device memory: elements of its dtype, in NHWC order.
struct DeviceStorage final : Storage {
  DeviceStorage(std::shared_ptr<Device> of, std::int64_t elements, std::size_t bytes)
      : device(std::move(of)), memory(bytes, device->stream()), count(elements) {}
  std::shared_ptr<Device> device;  // declared first, so that it outlives `memory`
  cuda::DeviceMemory memory;
  std::int64_t count;
};

/// Returns the device memory of a tensor of this backend. Throws std::invalid_argument for a tensor
/// of another backend, an empty tensor, or a shape that does not match the memory's size.
void* device_data(const Tensor& tensor);

}  // namespace halfscope::sim::backend::cudnn
