// SPDX-License-Identifier: Apache-2.0
// Elementwise operations, and joining and splitting of tensors.
#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"

namespace halfscope::sim::backend::cpu {
void CpuBackend::relu_forward(const Tensor& x, Tensor& y) {
  require_same_size("relu", x, y);
  const float* in = data(x);
  float* out = data(y);
  parallel_parts(x.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      out[i] = in[i] <= 0 ? 0.0F : in[i];  // NaN is returned as NaN
    }
    if (x.dtype != y.dtype) round_values(y.dtype, out + first, count);
  });
}

void CpuBackend::relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  require_same_size("relu", y, dy);
  require_same_size("relu", dy, dx);
  const float *in = data(y), *up = data(dy);
  float* out = data(dx);
  parallel_parts(y.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const float gradient = up[i];  // read unconditionally: avoids a branch
      out[i] = in[i] <= 0 ? 0.0F : gradient;
    }
    if (dy.dtype != dx.dtype) round_values(dx.dtype, out + first, count);
  });
}

void CpuBackend::add(const Tensor& a, const Tensor& b, Tensor& y) {
  require_same_size("add", a, b);
  require_same_size("add", b, y);
  const float *left = data(a), *right = data(b);
  float* out = data(y);
  parallel_parts(y.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) out[i] = left[i] + right[i];
    round_values(y.dtype, out + first, count);
  });
}

void CpuBackend::multiply(const Tensor& x, double factor, Tensor& y) {
  require_same_size("multiply", x, y);
  const float* in = data(x);
  float* out = data(y);
  const auto by = static_cast<float>(factor);
  parallel_parts(y.size(), kPart, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) out[i] = in[i] * by;
    round_values(y.dtype, out + first, count);
  });
}

void CpuBackend::join(std::span<const Tensor> parts, Tensor& y) {
  require_parts(y, parts);
  float* out = data(y);
  const std::int64_t whole = item_size(y);
  parallel(y.shape[0], [&](std::int64_t n) {
    float* to = out + n * whole;
    for (const Tensor& part : parts) {
      to = std::copy_n(data(part) + n * item_size(part), item_size(part), to);
    }
    round_values(y.dtype, out + n * whole, whole);
  });
}

void CpuBackend::split(const Tensor& dy, std::span<Tensor> parts) {
  require_parts(dy, parts);
  const float* in = data(dy);
  parallel(dy.shape[0], [&](std::int64_t n) {
    const float* from = in + n * item_size(dy);
    for (const Tensor& part : parts) {
      float* to = data(part) + n * item_size(part);
      std::copy_n(from, item_size(part), to);
      if (part.dtype != dy.dtype) round_values(part.dtype, to, item_size(part));
      from += item_size(part);
    }
  });
}

}  // namespace halfscope::sim::backend::cpu
