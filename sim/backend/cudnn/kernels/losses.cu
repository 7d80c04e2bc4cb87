// SPDX-License-Identifier: Apache-2.0
// Losses and embeddings. A loss is binary32 within a row; the host adds the rows in order, in
// binary64. The gradient is computed and multiplied in binary32 and rounded once.
#include <cmath>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

/// Runs one thread per row.
template <class T>
__global__ void cross_entropy_kernel(const T* logits, const std::int32_t* labels, std::int64_t rows,
                                     std::int64_t classes, float factor, T* dlogits,
                                     float* losses) {
  for (std::int64_t row = first_element(); row < rows; row += element_stride()) {
    const T* const z = logits + row * classes;
    T* const out = dlogits + row * classes;
    const std::int64_t label = labels[row];
    losses[row] = 0;
    if (label < 0) {
      for (std::int64_t k = 0; k < classes; ++k) out[k] = narrow<T>(0);
      continue;
    }
    float largest = wide(z[0]);  // if there is a NaN, the sum below is NaN
    for (std::int64_t k = 1; k < classes; ++k) {
      const float value = wide(z[k]);
      largest = largest < value ? value : largest;
    }
    float sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += expf(wide(z[k]) - largest);
    losses[row] = logf(sum) - (wide(z[label]) - largest);
    for (std::int64_t k = 0; k < classes; ++k) {
      const float share = expf(wide(z[k]) - largest) / sum;
      out[k] = narrow<T>((share - (k == label ? 1.0F : 0.0F)) * factor);
    }
  }
}

template <class T>
__global__ void smooth_l1_kernel(const T* x, const float* target, const std::uint8_t* mask,
                                 std::int64_t count, std::int64_t width, float factor, T* dx,
                                 float* losses) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    float loss = 0, gradient = 0;
    if (mask[i / width] != 0) {
      const float d = wide(x[i]) - target[i], size = fabsf(d);
      loss = size < 1.0F ? 0.5F * d * d : size - 0.5F;
      gradient = (d < -1.0F ? -1.0F : d > 1.0F ? 1.0F : d) * factor;  // NaN is kept
    }
    losses[i] = loss;
    dx[i] = narrow<T>(gradient);
  }
}

template <class T>
__global__ void embed_kernel(const std::int32_t* ids, std::int64_t count, std::int64_t width,
                             const T* table, T* y) {
  for (std::int64_t i = first_element(); i < count * width; i += element_stride()) {
    y[i] = table[ids[i / width] * width + i % width];
  }
}

/// Runs one thread per element of the table, which adds the rows with its id, in order.
template <class T>
__global__ void embed_gradient_kernel(const std::int32_t* ids, std::int64_t count,
                                      std::int64_t elements, std::int64_t width, const T* dy,
                                      T* dtable, bool add) {
  for (std::int64_t i = first_element(); i < elements; i += element_stride()) {
    float sum = add ? wide(dtable[i]) : 0.0F;
    for (std::int64_t k = 0; k < count; ++k) {
      if (ids[k] == i / width) sum += wide(dy[k * width + i % width]);
    }
    dtable[i] = narrow<T>(sum);
  }
}

}  // namespace

void softmax_cross_entropy(Elements logits, const std::int32_t* labels, std::int64_t rows,
                           std::int64_t classes, float factor, Elements dlogits, float* losses,
                           cudaStream_t stream) {
  with_type(logits.dtype, [&]<class T>(T) {
    constexpr unsigned kFewThreads = 64;  // few rows: use more multiprocessors
    launch("softmax_cross_entropy", cross_entropy_kernel<T>,
           {.blocks = blocks_of(rows, kFewThreads), .threads = kFewThreads}, stream,
           static_cast<const T*>(logits.data), labels, rows, classes, factor,
           static_cast<T*>(dlogits.data), losses);
  });
}

void smooth_l1(Elements x, const float* target, const std::uint8_t* mask, std::int64_t rows,
               std::int64_t width, float factor, Elements dx, float* losses, cudaStream_t stream) {
  with_type(x.dtype, [&]<class T>(T) {
    launch("smooth_l1", smooth_l1_kernel<T>, {.blocks = blocks_of(rows * width)}, stream,
           static_cast<const T*>(x.data), target, mask, rows * width, width, factor,
           static_cast<T*>(dx.data), losses);
  });
}

void embed_forward(const std::int32_t* ids, std::int64_t count, std::int64_t width, Elements table,
                   Elements y, cudaStream_t stream) {
  with_type(y.dtype, [&]<class T>(T) {
    launch("embed", embed_kernel<T>, {.blocks = blocks_of(count * width)}, stream, ids, count,
           width, static_cast<const T*>(table.data), static_cast<T*>(y.data));
  });
}

void embed_backward(const std::int32_t* ids, std::int64_t count, std::int64_t rows,
                    std::int64_t width, Elements dy, Elements dtable, bool add,
                    cudaStream_t stream) {
  with_type(dy.dtype, [&]<class T>(T) {
    launch("embed backward", embed_gradient_kernel<T>, {.blocks = blocks_of(rows * width)}, stream,
           ids, count, rows * width, width, static_cast<const T*>(dy.data),
           static_cast<T*>(dtable.data), add);
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
