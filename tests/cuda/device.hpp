// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime for tests: errors as exceptions, device memory by RAII.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace device {

inline bool available() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

inline void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

struct Free {
  void operator()(void* p) const { cudaFree(p); }
};

/// `count` elements of device memory, not set.
template <typename T>
std::unique_ptr<T, Free> allocate(std::size_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, count * sizeof(T)));
  return std::unique_ptr<T, Free>(static_cast<T*>(p));
}

template <typename T>
std::unique_ptr<T, Free> copy_of(const std::vector<T>& host) {
  auto out = allocate<T>(host.size());
  check(cudaMemcpy(out.get(), host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  check(cudaDeviceSynchronize());  // streams that do not wait for the null stream read it next
  return out;
}

/// Of memory that nothing writes to any more.
template <typename T>
std::vector<T> fetch(const T* from, std::size_t count) {
  std::vector<T> out(count);
  check(cudaMemcpy(out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return out;
}

inline unsigned blocks_for(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

}  // namespace device
