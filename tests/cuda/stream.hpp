// SPDX-License-Identifier: Apache-2.0
// A stream of a test's own, which nothing else waits for.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/device.hpp"

class Stream {
 public:
  Stream() { device::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};
