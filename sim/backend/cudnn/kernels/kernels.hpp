// SPDX-License-Identifier: Apache-2.0
// The cuDNN backend's own kernels (definitions: sim/backend/backend.hpp). Each function queues its
// work on the stream and returns. Pointers are to device memory, at the start of an allocation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "sim/backend/backend.hpp"
#include "sim/backend/update_constants.hpp"

namespace halfscope::sim::backend::cudnn::kernels {

/// The memory of a tensor, or of a part of it.
struct Elements {
  Dtype dtype = Dtype::f32;
  void* data = nullptr;
};

// elementwise.cu
void copy(Elements from, Elements to, std::int64_t count, cudaStream_t stream);
void fill(Elements to, std::int64_t count, float value, cudaStream_t stream);
/// Copies `row` to every row of `to` (rows, width).
void fill_rows(Elements row, Elements to, std::int64_t rows, std::int64_t width,
               cudaStream_t stream);
void relu_forward(Elements x, Elements y, std::int64_t count, cudaStream_t stream);
void relu_backward(Elements y, Elements dy, Elements dx, std::int64_t count, cudaStream_t stream);
void add(Elements a, Elements b, Elements y, std::int64_t count, cudaStream_t stream);
void multiply(Elements x, float factor, Elements y, std::int64_t count, cudaStream_t stream);
/// Copies `rows` pieces of `width` elements. Pieces begin from_stride elements apart in `from`, and
/// to_stride elements apart in `to`.
void copy_pieces(Elements from, std::int64_t from_stride, Elements to, std::int64_t to_stride,
                 std::int64_t rows, std::int64_t width, cudaStream_t stream);

// Writes the sums of x (rows, width) over its rows, in binary32, to sums (width); adds them if
// `add` is true. `partial` must have space for partial_sums(rows) * width floats.
std::int64_t partial_sums(std::int64_t rows);
void sum_rows(Elements x, std::int64_t rows, std::int64_t width, float* partial, Elements sums,
              bool add, cudaStream_t stream);

// batch_norm.cu. Rows (rows, channels); parameters and statistics have one binary32 value per
// channel.
struct BatchNorm {
  std::int64_t rows = 0, channels = 0;
  float epsilon = 0;
  const float *gamma = nullptr, *beta = nullptr;
  float *running_mean = nullptr, *running_variance = nullptr;
  float *mean = nullptr, *inverse_deviation = nullptr;  ///< the statistics that normalise
};
/// Computes the statistics of x and updates the running statistics.
void batch_norm_statistics(const BatchNorm& layer, float momentum, Elements x, cudaStream_t stream);
/// Copies the running statistics to those that normalise.
void batch_norm_running(const BatchNorm& layer, cudaStream_t stream);
void batch_norm_forward(const BatchNorm& layer, Elements x, Elements y, cudaStream_t stream);
void batch_norm_backward(const BatchNorm& layer, Elements x, Elements dy, Elements dx,
                         float* dgamma, float* dbeta, bool add, cudaStream_t stream);

// Pooling windows: images (n, h, w, c) to (n, p, q, c), without padding.
struct Windows {
  std::int64_t kernel, stride, n, h, w, c, p, q;
};
/// If several values of a window are the largest, the first in row order gets the gradient. A NaN
/// counts as larger than any number.
void max_pool_backward(const Windows& windows, Elements x, Elements dy, Elements dx,
                       cudaStream_t stream);

// Writes one loss per row to losses (rows); 0 if the row's label is -1.
void softmax_cross_entropy(Elements logits, const std::int32_t* labels, std::int64_t rows,
                           std::int64_t classes, float factor, Elements dlogits, float* losses,
                           cudaStream_t stream);
/// Writes one loss per element to losses (rows, width).
void smooth_l1(Elements x, const float* target, const std::uint8_t* mask, std::int64_t rows,
               std::int64_t width, float factor, Elements dx, float* losses, cudaStream_t stream);
void embed_forward(const std::int32_t* ids, std::int64_t count, std::int64_t width, Elements table,
                   Elements y, cudaStream_t stream);
void embed_backward(const std::int32_t* ids, std::int64_t count, std::int64_t rows,
                    std::int64_t width, Elements dy, Elements dtable, bool add,
                    cudaStream_t stream);

// lstm.cu
struct Lstm {
  std::int64_t rows = 0, width = 0;
  Elements gates;
  const float* c_before = nullptr;
};
void lstm_forward(const Lstm& cell, float* c, Elements h, cudaStream_t stream);
void lstm_backward(const Lstm& cell, const float* c, Elements dh, float* dc, Elements dgates,
                   cudaStream_t stream);

// Device memory of one update. A state pointer is null if the rule does not use it; delta.data is
// null if the caller does not need the update. State and delta have the weight's dtype.
struct UpdateMemory {
  Elements gradient, weight, delta;
  void *first_state = nullptr, *second_state = nullptr;
};
void update(const UpdateConstants& constants, const UpdateMemory& memory, std::int64_t count,
            cudaStream_t stream);

}  // namespace halfscope::sim::backend::cudnn::kernels
