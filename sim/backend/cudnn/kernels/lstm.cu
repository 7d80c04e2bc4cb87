// SPDX-License-Identifier: Apache-2.0
// The LSTM cell, with gates in the order i, f, g, o. One thread computes one unit of one row.
#include <cmath>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

__device__ float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

/// The activated gates of one unit.
struct Gates {
  float input, forget, candidate, output;
};
template <class T>
__device__ Gates gates_of(const T* gates, std::int64_t row, std::int64_t unit, std::int64_t width) {
  const T* const at = gates + 4 * row * width + unit;
  return {logistic(wide(at[0])), logistic(wide(at[width])), tanhf(wide(at[2 * width])),
          logistic(wide(at[3 * width]))};
}

template <class T>
__global__ void forward_kernel(const T* gates, const float* c_before, std::int64_t rows,
                               std::int64_t width, float* c, T* h) {
  for (std::int64_t i = first_element(); i < rows * width; i += element_stride()) {
    const Gates g = gates_of(gates, i / width, i % width, width);
    c[i] = g.forget * c_before[i] + g.input * g.candidate;
    h[i] = narrow<T>(g.output * tanhf(c[i]));
  }
}

template <class T>
__global__ void backward_kernel(const T* gates, const float* c_before, const float* c, const T* dh,
                                std::int64_t rows, std::int64_t width, float* dc, T* dgates) {
  for (std::int64_t i = first_element(); i < rows * width; i += element_stride()) {
    const Gates g = gates_of(gates, i / width, i % width, width);
    const float up = wide(dh[i]), t = tanhf(c[i]);
    const float d = dc[i] + up * g.output * (1.0F - t * t);
    T* const to = dgates + 4 * (i / width) * width + i % width;
    to[0] = narrow<T>(d * g.candidate * (g.input * (1.0F - g.input)));
    to[width] = narrow<T>(d * c_before[i] * (g.forget * (1.0F - g.forget)));
    to[2 * width] = narrow<T>(d * g.input * (1.0F - g.candidate * g.candidate));
    to[3 * width] = narrow<T>(up * t * (g.output * (1.0F - g.output)));
    dc[i] = d * g.forget;
  }
}

}  // namespace

void lstm_forward(const Lstm& cell, float* c, Elements h, cudaStream_t stream) {
  with_type(h.dtype, [&]<class T>(T) {
    launch("lstm", forward_kernel<T>, {.blocks = blocks_of(cell.rows * cell.width)}, stream,
           static_cast<const T*>(cell.gates.data), cell.c_before, cell.rows, cell.width, c,
           static_cast<T*>(h.data));
  });
}

void lstm_backward(const Lstm& cell, const float* c, Elements dh, float* dc, Elements dgates,
                   cudaStream_t stream) {
  with_type(dh.dtype, [&]<class T>(T) {
    launch("lstm backward", backward_kernel<T>, {.blocks = blocks_of(cell.rows * cell.width)},
           stream, static_cast<const T*>(cell.gates.data), cell.c_before, c,
           static_cast<const T*>(dh.data), cell.rows, cell.width, dc, static_cast<T*>(dgates.data));
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
