// SPDX-License-Identifier: Apache-2.0
#include "cuda/tensor_core/gemm_kernels.hpp"

#include "cuda/device.hpp"

namespace probe {
namespace {

__global__ void fill_kernel(GemmInputs kind, int side, int lines, int length, bool across,
                            std::uint16_t* out) {
  const int count = lines * length, step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += step) {
    const int line = across ? i % lines : i / length, k = across ? i / lines : i % length;
    out[i] = gemm_element(kind, side, line, k, length);
  }
}

}  // namespace

void fill_matrix(GemmInputs kind, int side, int lines, int length, bool across,
                 std::uint16_t* out) {
  fill_kernel<<<2048, 256>>>(kind, side, lines, length, across, out);
  device::check(cudaGetLastError());
}

}  // namespace probe
