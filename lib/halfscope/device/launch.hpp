// SPDX-License-Identifier: Apache-2.0
// Kernel launches, and the part of CUDA's language that kernels may use: threadIdx, blockIdx,
// blockDim and gridDim in one dimension; __shared__ variables; __syncthreads; __shfl_xor_sync,
// __shfl_sync, __ballot_sync with all lanes; atomicAdd, atomicOr, atomicMin, atomicMax on integers;
// __threadfence; __ldg, __ldcg; arithmetic with a stated rounding, such as __fma_rn. With this part
// alone, the same source also runs on the emulated device of tests/cuda, which tests every kernel
// on machines without a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "halfscope/device/runtime.hpp"

#ifdef __CUDACC__

namespace halfscope::cuda {

struct Grid {
  unsigned blocks = 0, threads = 256;
  std::size_t shared = 0;  ///< bytes of dynamic shared memory
};

/// Queues kernel(arguments...) on `stream`; does nothing for a grid without blocks. Throws
/// std::runtime_error with `name` in the message if the launch fails.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream,
            Arguments&&... arguments) {
  constexpr std::size_t kAlwaysAllowed = std::size_t{48} * 1024;
  if (grid.blocks == 0) return;
  if (grid.shared > kAlwaysAllowed) {
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(grid.shared)),
          name);
  }
  kernel<<<grid.blocks, grid.threads, grid.shared, stream>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError(), name);
}

/// Returns the block's dynamic shared memory.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char halfscope_dynamic_shared[];
  return reinterpret_cast<T*>(halfscope_dynamic_shared);
}

}  // namespace halfscope::cuda

#else
#include "cuda/emulated/language.hpp"  // the same names on the host
#endif
