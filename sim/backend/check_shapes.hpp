// SPDX-License-Identifier: Apache-2.0
// Checks of the arguments of operations, for every backend. Each throws std::invalid_argument; its
// message says what was found and what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

/// Converts a nonnegative extent or position to an index of a standard container.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Requires extents of at least 0 and a dtype that backends support.
void require_tensor(const Shape& shape, Dtype dtype);

/// Extents of a convolution's x, w and y, or of their gradients.
struct ConvolutionExtents {
  std::int64_t n, h, w, c, k, p, q;
};
ConvolutionExtents require_convolution(const Convolution& conv, const Shape& x, const Shape& w,
                                       const Shape& y);

/// Extents of a dense layer's x (N, C), w (K, C) and y (N, K).
struct DenseExtents {
  std::int64_t n, c, k;
};
DenseExtents require_dense(const Shape& x, const Shape& w, const Shape& y);

void require_bias(const Tensor& bias, std::int64_t count);
/// Returns K, the number of sums.
std::int64_t require_bias_gradient(const Shape& dy, const Shape& db);

void require_same_size(const char* operation, const Tensor& a, const Tensor& b);
void require_same_dtype(const char* operation, std::initializer_list<Tensor> tensors);

/// Returns the number of elements of one item of a batch.
inline std::int64_t item_size(const Tensor& tensor) { return tensor.size() / tensor.shape[0]; }
/// Requires that the parts (N, A_i, C) join to `whole` (N, A, C).
void require_parts(const Tensor& whole, std::span<const Tensor> parts);

/// Requires that `tensor`, divided into vectors of its last extent, has `rows` rows.
void require_rows(const char* operation, const Tensor& tensor, std::size_t rows);
/// Requires that every index is in [least, end).
void require_range(const char* what, std::span<const std::int32_t> indices, std::int64_t least,
                   std::int64_t end);
/// Requires that batch normalisation's x has gamma's channels as its last extent. Returns the
/// number of rows, that is, of values per channel.
std::int64_t require_channels(const Tensor& x, const Tensor& gamma);
/// Requires at least two values per channel: batch normalisation in training needs a variance.
void require_variance(std::int64_t values_per_channel);
void require_targets(std::span<const float> target, const Tensor& x);

/// Requires gates of shape (N, 4H) for h (N, H). Returns H.
std::int64_t require_lstm(const Tensor& gates, const Tensor& h);

}  // namespace halfscope::sim::backend
