// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/check_shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace halfscope::sim::backend {

void require_tensor(const Shape& shape, Dtype dtype) {
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) {
    throw std::invalid_argument("sim: expected extents of 0 or more for a tensor's shape");
  }
  if (dtype != Dtype::f32 && dtype != Dtype::f16 && dtype != Dtype::bf16) {
    throw std::invalid_argument(
        fmt::format("sim: expected a tensor of F32, F16 or BF16, found {}", name_of(dtype)));
  }
}

ConvolutionExtents require_convolution(const Convolution& conv, const Shape& x, const Shape& w,
                                       const Shape& y) {
  const auto refuse = [&] {
    return std::invalid_argument(fmt::format(
        "sim: a convolution (kernel {}, stride {}, padding {}) needs x (N, H, W, C), w (K, R, S, "
        "C) and y (N, P, Q, K), found {}, {} and {}",
        conv.kernel, conv.stride, conv.padding, x, w, y));
  };
  if (x.size() != 4 || w.size() != 4 || y.size() != 4) throw refuse();
  if (conv.kernel < 1 || conv.stride < 1 || conv.padding < 0) throw refuse();
  const ConvolutionExtents e = {x[0], x[1], x[2], x[3], w[0], y[1], y[2]};
  const std::int64_t least = conv.kernel - 2 * conv.padding;
  if (e.h < least || e.w < least) throw refuse();
  if (w != Shape{e.k, conv.kernel, conv.kernel, e.c}) throw refuse();
  if (y != Shape{e.n, conv.out(e.h), conv.out(e.w), e.k}) throw refuse();
  return e;
}

DenseExtents require_dense(const Shape& x, const Shape& w, const Shape& y) {
  const bool shaped = !x.empty() && w.size() == 2 && !y.empty();
  const std::int64_t n = shaped ? x[0] : 0;
  if (!shaped || y[0] != n || elements(x) != n * w[1] || elements(y) != n * w[0]) {
    throw std::invalid_argument(fmt::format(
        "sim: a dense layer needs x (N, C), w (K, C) and y (N, K), found {}, {} and {}", x, w, y));
  }
  return {n, w[1], w[0]};
}

void require_bias(const Tensor& bias, std::int64_t count) {
  if (bias.size() == count) return;
  throw std::invalid_argument(
      fmt::format("sim: expected a bias of {} values, found {}", count, bias.size()));
}

std::int64_t require_bias_gradient(const Shape& dy, const Shape& db) {
  const std::int64_t k = dy.empty() ? 0 : dy.back();
  if (k == 0 || elements(db) != k) {
    throw std::invalid_argument(fmt::format(
        "sim: expected a bias gradient of dy's last extent, found {} for dy {}", db, dy));
  }
  return k;
}

void require_same_size(const char* operation, const Tensor& a, const Tensor& b) {
  if (a.size() == b.size()) return;
  throw std::invalid_argument(
      fmt::format("sim: {} of {} and {} values", operation, a.size(), b.size()));
}

void require_same_dtype(const char* operation, std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype == tensors.begin()->dtype) continue;
    throw std::invalid_argument(fmt::format("sim: {} of {} and {} tensors", operation,
                                            name_of(tensors.begin()->dtype),
                                            name_of(tensor.dtype)));
  }
}

void require_parts(const Tensor& whole, std::span<const Tensor> parts) {
  std::int64_t total = 0;
  for (const Tensor& part : parts) {
    if (part.shape[0] != whole.shape[0]) throw std::invalid_argument("sim: join: other batches");
    total += part.size();
  }
  if (total != whole.size()) {
    throw std::invalid_argument(
        fmt::format("sim: join: parts of {} values, a whole of {}", total, whole.size()));
  }
}

void require_rows(const char* operation, const Tensor& tensor, std::size_t rows) {
  if (!tensor.shape.empty() && tensor.size() == tensor.shape.back() * std::int64_t(rows)) return;
  throw std::invalid_argument(
      fmt::format("sim: {}: a tensor of {} values for {} rows", operation, tensor.size(), rows));
}

void require_range(const char* what, std::span<const std::int32_t> indices, std::int64_t least,
                   std::int64_t end) {
  for (const std::int32_t index : indices) {
    if (index >= least && index < end) continue;
    throw std::invalid_argument(fmt::format("sim: {} {} is outside 0 to {}", what, index, end - 1));
  }
}

std::int64_t require_channels(const Tensor& x, const Tensor& gamma) {
  const std::int64_t last = x.shape.empty() ? 0 : x.shape.back();
  if (last == gamma.size() && last > 0) return x.size() / last;
  throw std::invalid_argument(fmt::format(
      "batch normalisation: {} channels of parameters, {} of the tensor", gamma.size(), last));
}

void require_variance(std::int64_t values_per_channel) {
  if (values_per_channel >= 2) return;
  throw std::invalid_argument(
      "batch normalisation: one value per channel has no variance; use a larger batch");
}

void require_targets(std::span<const float> target, const Tensor& x) {
  if (std::ssize(target) == x.size()) return;
  throw std::invalid_argument(
      fmt::format("sim: smooth L1: {} targets for {} values", target.size(), x.size()));
}

std::int64_t require_lstm(const Tensor& gates, const Tensor& h) {
  const std::int64_t width = h.shape.back();
  if (gates.shape.back() != 4 * width || gates.size() != 4 * h.size()) {
    throw std::invalid_argument(
        fmt::format("sim: lstm: {} gates per row, expected four times the {} units",
                    gates.shape.back(), width));
  }
  return width;
}

}  // namespace halfscope::sim::backend
