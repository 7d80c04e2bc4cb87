// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that we call, for memory and devices; runtime_streams.cpp has
// those for streams. Programs with these link no cudart.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/failed.hpp"
#include "cuda/emulated/limits.hpp"
#include "cuda/emulated/memory.hpp"
#include "cuda/emulated/stream.hpp"

using namespace halfscope::emulated;

namespace {

/// Where cudaMemcpy's two sides are.
struct Sides {
  bool to_device = false, from_device = false, known = true;
};

Sides sides(cudaMemcpyKind kind, const void* to, const void* from, std::size_t bytes) {
  switch (kind) {
    case cudaMemcpyHostToHost: return {false, false};
    case cudaMemcpyHostToDevice: return {true, false};
    case cudaMemcpyDeviceToHost: return {false, true};
    case cudaMemcpyDeviceToDevice: return {true, true};
    case cudaMemcpyDefault: return {on_device(to, bytes), on_device(from, bytes)};
  }
  return {false, false, false};
}

bool overlap(const void* a, const void* b, std::size_t bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y ? y - x < bytes : x - y < bytes;
}

cudaError_t check_copy(const Sides& where, const void* to, const void* from, std::size_t bytes) {
  if (!where.known) return cudaErrorInvalidMemcpyDirection;
  if (where.to_device != on_device(to, bytes)) return cudaErrorInvalidValue;
  if (where.from_device != on_device(from, bytes)) return cudaErrorInvalidValue;
  if (overlap(to, from, bytes)) report_problem("a copy between memory that overlaps");
  return cudaSuccess;
}

/// As the device does it: pageable memory is read before the call returns, and written, too; what
/// is pinned is touched when the stream comes to it.
void copy(void* to, const void* from, std::size_t bytes, const Sides& where, cudaStream_t stream) {
  if (!where.from_device && !inside(from, bytes, Space::pinned)) {
    const auto* first = static_cast<const unsigned char*>(from);
    enqueue(stream, [=, staged = std::vector<unsigned char>(first, first + bytes)] {
      std::memcpy(to, staged.data(), bytes);
    });
  } else {
    enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  }
  if (!where.to_device && !inside(to, bytes, Space::pinned)) drain(stream);
}

cudaError_t allocate_into(void** out, std::size_t bytes, Space space) {
  if (out == nullptr) return failed(cudaErrorInvalidValue);
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  *out = allocate(bytes, space);
  return *out != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t release_now(void* p, Space space) {
  if (p == nullptr) return cudaSuccess;
  const cudaError_t status = drain_all();
  if (!release(p, space)) return failed(cudaErrorInvalidValue);
  return failed(status);
}

}  // namespace

// Devices.

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : failed(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  if (device != 0) return failed(cudaErrorInvalidDevice);
  *out = {};
  std::strcpy(out->name, "emulated device");
  out->major = 9;
  out->minor = 0;
  out->totalGlobalMem = kDeviceBytes;
  out->multiProcessorCount = kProcessors;
  out->warpSize = 32;
  out->maxThreadsPerBlock = kMostThreads;
  out->sharedMemPerBlock = 48 * 1024;
  out->sharedMemPerBlockOptin = kMostShared;
  out->l2CacheSize = 50 << 20;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return failed(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = kProcessors; return cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock: *value = kMostThreads; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = kMostShared; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
    case cudaDevAttrWarpSize: *value = 32; return cudaSuccess;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported: *value = 1; return cudaSuccess;
    default: return failed(cudaErrorInvalidValue);
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const bool fits = attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
                    (value >= 0 && value <= kMostShared);
  return function != nullptr && fits ? cudaSuccess : failed(cudaErrorInvalidValue);
}

// Memory.

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = kDeviceBytes - device_bytes_allocated();
  *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  return allocate_into(out, bytes, Space::device);
}

cudaError_t cudaMallocAsync(void** out, std::size_t bytes, cudaStream_t stream) {
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return failed(cudaErrorInvalidValue);
  return allocate_into(out, bytes, Space::device);
}

cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  return allocate_into(out, bytes, Space::pinned);
}

cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  return allocate_into(out, bytes, Space::pinned);
}

cudaError_t cudaFree(void* p) { return release_now(p, Space::device); }
cudaError_t cudaFreeHost(void* p) { return release_now(p, Space::pinned); }

cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  if (!is_stream(stream)) {
    report_problem("cudaFreeAsync in the order of what is no stream");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (p == nullptr) return failed(cudaErrorInvalidValue);
  if (!on_device(p, 0)) {
    release(p, Space::device);  // says what is wrong
    return failed(cudaErrorInvalidValue);
  }
  enqueue(stream, [=] { release(p, Space::device); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  const Sides where = sides(kind, to, from, bytes);
  const cudaError_t status = check_copy(where, to, from, bytes);
  if (status != cudaSuccess) return failed(status);
  copy(to, from, bytes, where, stream);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (!is_stream(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) return failed(cudaErrorInvalidValue);
  enqueue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  static int the_only = 0;
  if (device != 0) return failed(cudaErrorInvalidDevice);
  *pool = reinterpret_cast<cudaMemPool_t>(&the_only);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<std::uint64_t*>(value) = 0;  // nothing is kept
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void* value) {
  return pool != nullptr && value != nullptr ? cudaSuccess : failed(cudaErrorInvalidValue);
}
