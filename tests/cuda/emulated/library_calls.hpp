// SPDX-License-Identifier: Apache-2.0
// What the stand-ins for cuDNN's and cuBLAS's functions share: handles, refusals, tensors.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/emulated/stream.hpp"

// CUDA's names of what handles point to.
struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace halfscope::emulated {

/// Ends a call with a status.
template <class Status>
struct Refused : std::runtime_error {
  Refused(Status s, const std::string& why) : std::runtime_error(why), status(s) {}
  Status status;
};

/// The status of a body that ends or throws Refused. What it says is kept for
/// cudnnGetLastErrorString.
void keep_message(const std::string& message);
template <class Status, class Body>
Status answered(Body body) {
  try {
    body();
    return Status{};  // both libraries' success
  } catch (const Refused<Status>& refused) {
    keep_message(refused.what());
    return refused.status;
  }
}

inline void require(bool condition, const std::string& why) {
  if (!condition) throw Refused<cudnnStatus_t>(CUDNN_STATUS_BAD_PARAM, why);
}
inline void supported(bool condition, const std::string& why) {
  if (!condition) throw Refused<cudnnStatus_t>(CUDNN_STATUS_NOT_SUPPORTED, why);
}

enum class Type : std::uint8_t { f16, bf16, f32 };
std::size_t bytes_of(Type type);

/// The numbers at these places; and one rounding each.
double load(const void* from, std::size_t index, Type type);
void store(void* to, std::size_t index, Type type, double value);

/// To TF32's 11 bits, ties to even.
double to_tf32(double x);

/// A tensor's or filter's descriptor: N, H, W, C or K, R, S, C, and the strides of memory.
struct Layout {
  Type type = Type::f32;
  std::int64_t n = 0, h = 0, w = 0, c = 0;
  std::int64_t n_stride = 0, h_stride = 0, w_stride = 0, c_stride = 0;

  std::int64_t size() const { return n * h * w * c; }
  std::size_t at(std::int64_t i, std::int64_t y, std::int64_t x, std::int64_t k) const {
    return static_cast<std::size_t>(i * n_stride + y * h_stride + x * w_stride + k * c_stride);
  }
  bool same_shape(const Layout& b) const { return n == b.n && h == b.h && w == b.w && c == b.c; }
  /// Without gaps, channels innermost, or outside of the image.
  bool is_nhwc() const;
  bool is_nchw() const;
};

Layout layout_of(cudnnTensorDescriptor_t descriptor);
Layout layout_of(cudnnFilterDescriptor_t descriptor);

/// Refuses a pointer that is not to this much of device memory, or not to a multiple of 16 bytes.
void require_memory(const void* p, const Layout& layout, const std::string& what);

/// A factor the caller gave as float. One that cannot be what was meant (a double or a half read as
/// a float is a zero, a subnormal or a NaN) is a problem.
float factor(const void* p, const std::string& what);

/// All elements in the order N, H, W, C.
std::vector<double> values(const void* from, const Layout& layout);
/// to = alpha * values + beta * to, rounded once; to is not read where beta is 0.
void blend(const std::vector<double>& values, void* to, const Layout& layout, float alpha,
           float beta);

/// Queues the work on the handle's stream; refuses where there is no handle.
void queue(cudnnHandle_t handle, std::function<void()> work);

}  // namespace halfscope::emulated
