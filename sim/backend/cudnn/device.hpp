// SPDX-License-Identifier: Apache-2.0
// One GPU with its stream, its libraries' handles and its memory; everything the backend does goes
// through one stream, so that cuBLAS gives the same bits every time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "halfscope/device/runtime.hpp"
#include "sim/backend/cudnn/api.hpp"
#include "sim/backend/tensor.hpp"

namespace halfscope::sim::backend::cudnn {

class Device {
 public:
  /// The first device. Throws std::runtime_error where there is none.
  explicit Device(const CudaLibraries& libraries);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  cudaStream_t stream() const { return stream_; }
  cudnnHandle_t cudnn() const { return cudnn_; }
  cublasHandle_t cublas() const { return cublas_; }
  const CudaLibraries& libraries() const { return libraries_; }

  /// Throws where a call fails, naming it.
  void check(cudnnStatus_t status, const char* call) const {
    backend::cudnn::check(libraries_.cudnn, status, call);
  }
  void check(cublasStatus_t status, const char* call) const {
    backend::cudnn::check(libraries_.cublas, status, call);
  }

  /// Room for `bytes` bytes that lasts until the next call.
  void* workspace(std::size_t bytes);
  void wait() const;

 private:
  const CudaLibraries& libraries_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  cuda::DeviceMemory cublas_workspace_, workspace_;
  std::size_t workspace_bytes_ = 0;
};

/// A tensor's memory: elements of its dtype, NHWC as its shape says.
struct DeviceStorage final : Storage {
  DeviceStorage(std::shared_ptr<Device> of, std::int64_t elements, std::size_t bytes)
      : device(std::move(of)), memory(bytes, device->stream()), count(elements) {}
  std::shared_ptr<Device> device;  // outlives the memory
  cuda::DeviceMemory memory;
  std::int64_t count;
};

/// The memory of a tensor of this backend. Throws std::invalid_argument for another's, for an empty
/// one, and for a handle whose shape does not fit its memory.
void* device_data(const Tensor& tensor);

}  // namespace halfscope::sim::backend::cudnn
