// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated/library_calls.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <utility>

#include "cuda/emulated/device.hpp"

namespace halfscope::emulated {
namespace {

Type type_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF: return Type::f16;
    case CUDNN_DATA_BFLOAT16: return Type::bf16;
    case CUDNN_DATA_FLOAT: return Type::f32;
    default: throw Refused<cudnnStatus_t>(CUDNN_STATUS_NOT_SUPPORTED, "data type");
  }
}

void require_bytes(const void* p, std::size_t bytes, const std::string& what) {
  require(p != nullptr, what + " is null");
  require(reinterpret_cast<std::uintptr_t>(p) % 16 == 0, what + " is not aligned to 16 bytes");
  require(on_device(p, bytes), what + " is not " + std::to_string(bytes) + " bytes of the device");
}

}  // namespace

std::size_t bytes_of(Type type) { return type == Type::f32 ? 4 : 2; }

double load(const void* from, std::size_t index, Type type) {
  switch (type) {
    case Type::f16:
      return static_cast<double>(__half2float(static_cast<const __half*>(from)[index]));
    case Type::bf16:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(from)[index]));
    case Type::f32: return static_cast<double>(static_cast<const float*>(from)[index]);
  }
  return 0;
}

void store(void* to, std::size_t index, Type type, double value) {
  switch (type) {
    case Type::f16: static_cast<__half*>(to)[index] = __double2half(value); break;
    case Type::bf16: static_cast<__nv_bfloat16*>(to)[index] = __double2bfloat16(value); break;
    case Type::f32: static_cast<float*>(to)[index] = static_cast<float>(value); break;
  }
}

double to_tf32(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  constexpr int kPrecision = 11;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, kPrecision)), exponent - kPrecision);
}

bool Layout::is_nhwc() const {
  return c_stride == 1 && w_stride == c && h_stride == c * w && n_stride == c * w * h;
}
bool Layout::is_nchw() const {
  return w_stride == 1 && h_stride == w && c_stride == w * h && n_stride == w * h * c;
}

Layout layout_of(cudnnTensorDescriptor_t descriptor) {
  cudnnDataType_t type{};
  int n = 0, c = 0, h = 0, w = 0, n_stride = 0, c_stride = 0, h_stride = 0, w_stride = 0;
  const cudnnStatus_t status = cudnnGetTensor4dDescriptor(
      descriptor, &type, &n, &c, &h, &w, &n_stride, &c_stride, &h_stride, &w_stride);
  require(status == CUDNN_STATUS_SUCCESS && n > 0, "a tensor descriptor that was not set");
  return {type_of(type), n, h, w, c, n_stride, h_stride, w_stride, c_stride};
}

Layout layout_of(cudnnFilterDescriptor_t descriptor) {
  cudnnDataType_t type{};
  cudnnTensorFormat_t format{};
  int k = 0, c = 0, r = 0, s = 0;
  const cudnnStatus_t status =
      cudnnGetFilter4dDescriptor(descriptor, &type, &format, &k, &c, &r, &s);
  require(status == CUDNN_STATUS_SUCCESS && k > 0, "a filter descriptor that was not set");
  if (format == CUDNN_TENSOR_NHWC) return {type_of(type), k, r, s, c, r * s * c, s * c, c, 1};
  supported(format == CUDNN_TENSOR_NCHW, "the filter's format");
  return {type_of(type), k, r, s, c, c * r * s, s, 1, r * s};
}

void require_memory(const void* p, const Layout& layout, const std::string& what) {
  const std::size_t last = layout.at(layout.n - 1, layout.h - 1, layout.w - 1, layout.c - 1);
  require_bytes(p, (last + 1) * bytes_of(layout.type), what);
}

float factor(const void* p, const std::string& what) {
  require(p != nullptr, what + " is null");
  const float value = *static_cast<const float*>(p);
  if (value != 0 && !std::isnormal(value)) report_problem(what + " is no binary32 number");
  if (value == 0 && what.starts_with("alpha")) report_problem(what + " is 0");
  return value;
}

std::vector<double> values(const void* from, const Layout& layout) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(layout.size()));
  for (std::int64_t n = 0; n < layout.n; ++n) {
    for (std::int64_t h = 0; h < layout.h; ++h) {
      for (std::int64_t w = 0; w < layout.w; ++w) {
        for (std::int64_t c = 0; c < layout.c; ++c) {
          out.push_back(load(from, layout.at(n, h, w, c), layout.type));
        }
      }
    }
  }
  return out;
}

void blend(const std::vector<double>& values, void* to, const Layout& layout, float alpha,
           float beta) {
  auto value = values.begin();
  for (std::int64_t n = 0; n < layout.n; ++n) {
    for (std::int64_t h = 0; h < layout.h; ++h) {
      for (std::int64_t w = 0; w < layout.w; ++w) {
        for (std::int64_t c = 0; c < layout.c; ++c) {
          const std::size_t i = layout.at(n, h, w, c);
          double result = static_cast<double>(alpha) * *value++;
          if (beta != 0) result += static_cast<double>(beta) * load(to, i, layout.type);
          store(to, i, layout.type, result);
        }
      }
    }
  }
}

void queue(cudnnHandle_t handle, std::function<void()> work) {
  require(handle != nullptr, "no handle");
  enqueue(handle->stream, std::move(work));
}

}  // namespace halfscope::emulated
