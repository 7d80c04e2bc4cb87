// SPDX-License-Identifier: Apache-2.0
// What every backend asks of its operations' arguments. Each throws std::invalid_argument that says
// what was found and wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// A nonnegative extent or place as an index of the standard library's containers.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Of a tensor to be made: no negative extent, and a dtype of the backends.
void require_tensor(const Shape& shape, Dtype dtype);

/// Of a convolution's x, w and y, or of their gradients.
struct ConvolutionExtents {
  std::int64_t n, h, w, c, k, p, q;
};
ConvolutionExtents require_convolution(const Convolution& conv, const Shape& x, const Shape& w,
                                       const Shape& y);

/// Of a dense layer's x (N, C), w (K, C) and y (N, K).
struct DenseExtents {
  std::int64_t n, c, k;
};
DenseExtents require_dense(const Shape& x, const Shape& w, const Shape& y);

void require_bias(const Tensor& bias, std::int64_t count);
/// Returns the number of sums.
std::int64_t require_bias_gradient(const Shape& dy, const Shape& db);

void require_same_size(const char* operation, const Tensor& a, const Tensor& b);
void require_same_dtype(const char* operation, std::initializer_list<Tensor> tensors);

/// Elements of one item of a batch.
inline std::int64_t item_size(const Tensor& tensor) { return tensor.size() / tensor.shape[0]; }
/// Parts (N, A_i, C) of a whole (N, A, C).
void require_parts(const Tensor& whole, std::span<const Tensor> parts);

/// A tensor whose last extent makes that many rows.
void require_rows(const char* operation, const Tensor& tensor, std::size_t rows);
/// Every index is in [least, end).
void require_range(const char* what, std::span<const std::int32_t> indices, std::int64_t least,
                   std::int64_t end);
/// Of batch normalisation in training: its values per channel have a variance.
void require_variance(std::int64_t values_per_channel);
void require_targets(std::span<const float> target, const Tensor& x);

/// gates (N, 4H) of h (N, H); returns H.
std::int64_t require_lstm(const Tensor& gates, const Tensor& h);

}  // namespace halfscope::sim::backend
