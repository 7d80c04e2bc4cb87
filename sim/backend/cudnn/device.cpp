// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/device.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace halfscope::sim::backend::cudnn {
namespace {

constexpr std::size_t kCublasWorkspace = std::size_t{32} << 20;  // NVIDIA's recommendation for
                                                                 // Hopper

/// Keeps freed memory in the pool: the next tensor probably has the same size.
void keep_freed_memory() {
  cudaMemPool_t pool = nullptr;
  cuda::check(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  std::uint64_t all = UINT64_MAX;
  cuda::check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
              "cudaMemPoolSetAttribute");
}

}  // namespace

Device::Device(const CudaLibraries& libraries) : libraries_(libraries) {
  cuda::check(cudaSetDevice(0), "cudaSetDevice");
  keep_freed_memory();
  cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
              "cudaStreamCreateWithFlags");
  check(libraries_.cudnn.cudnnCreate(&cudnn_), "cudnnCreate");
  check(libraries_.cudnn.cudnnSetStream(cudnn_, stream_), "cudnnSetStream");
  const CublasApi& blas = libraries_.cublas;
  check(blas.cublasCreate_v2(&cublas_), "cublasCreate");
  check(blas.cublasSetStream_v2(cublas_, stream_), "cublasSetStream");
  cublas_workspace_ = cuda::DeviceMemory(kCublasWorkspace, stream_);
  // Must follow cublasSetStream, which resets the workspace.
  check(blas.cublasSetWorkspace_v2(cublas_, cublas_workspace_.data(), kCublasWorkspace),
        "cublasSetWorkspace");
  check(blas.cublasSetMathMode(
            cublas_, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "cublasSetMathMode");
}

Device::~Device() {
  cudaStreamSynchronize(stream_);
  sent_.reset();
  if (cublas_ != nullptr) libraries_.cublas.cublasDestroy_v2(cublas_);
  if (cudnn_ != nullptr) libraries_.cudnn.cudnnDestroy(cudnn_);
  cublas_workspace_ = {};
  workspace_ = {};
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void* Device::workspace(std::size_t bytes) {
  if (bytes > workspace_bytes_) {
    workspace_ = {};
    workspace_ = cuda::DeviceMemory(bytes, stream_);
    workspace_bytes_ = bytes;
  }
  return workspace_.data();
}

void Device::wait() const { cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

void* device_data(const Tensor& tensor) {
  auto* storage = dynamic_cast<DeviceStorage*>(tensor.storage.get());
  if (storage == nullptr) {
    throw std::invalid_argument("sim: expected a tensor of the cuDNN backend, found " +
                                std::string(tensor ? "one of another backend" : "an empty one"));
  }
  if (storage->count != tensor.size()) {
    throw std::invalid_argument(
        fmt::format("sim: expected a tensor of {} values as its shape says, found memory of {}",
                    tensor.size(), storage->count));
  }
  return storage->memory.data();
}

}  // namespace halfscope::sim::backend::cudnn
