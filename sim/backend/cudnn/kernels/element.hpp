// SPDX-License-Identifier: Apache-2.0
// Tensor elements in device code. Arithmetic is binary32; a result is rounded once, to nearest with
// ties to even, when it is stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>

#include "halfscope/device/launch.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::sim::backend::cudnn::kernels {

__host__ __device__ inline float wide(float x) { return x; }
__host__ __device__ inline float wide(__half x) { return __half2float(x); }
__host__ __device__ inline float wide(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__host__ __device__ T narrow(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

/// Returns x rounded to T.
template <class T>
__host__ __device__ float rounded(float x) {
  return wide(narrow<T>(x));
}

/// Calls f(T{}), where T is the element type of a dtype.
template <class F>
void with_type(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::f32: return f(float{});
    case Dtype::f16: return f(__half{});
    case Dtype::bf16: return f(__nv_bfloat16{});
    default: throw std::invalid_argument("cudnn backend: tensors are F32, F16 or BF16");
  }
}

inline constexpr unsigned kThreads = 256;

/// Returns the number of blocks of `each` that cover `count`.
inline std::int64_t blocks_for(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

inline unsigned blocks_of(std::int64_t count, std::int64_t per_block = kThreads) {
  constexpr std::int64_t kMost = 1 << 20;  // beyond this, each thread computes several elements
  const std::int64_t blocks = blocks_for(count, per_block);
  return static_cast<unsigned>(blocks < kMost ? blocks : kMost);
}

/// Index of this thread's first element, and the distance to its next one.
__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t element_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace halfscope::sim::backend::cudnn::kernels
