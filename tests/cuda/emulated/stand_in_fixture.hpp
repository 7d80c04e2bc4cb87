// SPDX-License-Identifier: Apache-2.0
// For tests of the stand-ins: numbers on the device, and cuDNN's descriptors by RAII.
#pragma once

#include <cuda_fp16.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/emulated/libraries.hpp"

namespace stand_in {

using Floats = std::vector<float>;

inline const halfscope::sim::backend::cudnn::CudnnApi& dnn() {
  return halfscope::emulated::emulated_libraries().cudnn;
}
inline const halfscope::sim::backend::cudnn::CublasApi& blas() {
  return halfscope::emulated::emulated_libraries().cublas;
}

inline std::string last_words() {
  std::array<char, 200> text{};
  dnn().cudnnGetLastErrorString(text.data(), text.size());
  return text.data();
}

/// Numbers on the device, in the type.
class Values {
 public:
  Values(cudnnDataType_t type, const Floats& values) : type_(type), count_(values.size()) {
    if (type == CUDNN_DATA_FLOAT) {
      wide_ = device::copy_of(values);
      return;
    }
    std::vector<__half> halves;
    for (const float x : values) halves.push_back(__float2half_rn(x));
    narrow_ = device::copy_of(halves);
  }
  void* get() const { return wide_ ? static_cast<void*>(wide_.get()) : narrow_.get(); }
  Floats floats() const {
    if (type_ == CUDNN_DATA_FLOAT) return device::fetch(wide_.get(), count_);
    Floats out;
    for (const __half x : device::fetch(narrow_.get(), count_)) out.push_back(__half2float(x));
    return out;
  }

 private:
  cudnnDataType_t type_;
  std::size_t count_;
  std::unique_ptr<float, device::Free> wide_;
  std::unique_ptr<__half, device::Free> narrow_;
};

struct Tensor {
  Tensor(cudnnDataType_t type, int n, int h, int w, int c,
         cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC) {
    dnn().cudnnCreateTensorDescriptor(&descriptor);
    dnn().cudnnSetTensor4dDescriptor(descriptor, format, type, n, c, h, w);
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() { dnn().cudnnDestroyTensorDescriptor(descriptor); }
  cudnnTensorDescriptor_t descriptor = nullptr;
};

struct Filter {
  Filter(cudnnDataType_t type, int k, int r, int s, int c,
         cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC) {
    dnn().cudnnCreateFilterDescriptor(&descriptor);
    dnn().cudnnSetFilter4dDescriptor(descriptor, type, format, k, c, r, s);
  }
  Filter(const Filter&) = delete;
  ~Filter() { dnn().cudnnDestroyFilterDescriptor(descriptor); }
  cudnnFilterDescriptor_t descriptor = nullptr;
};

struct Convolution {
  explicit Convolution(int padding, int stride = 1, cudnnMathType_t math = CUDNN_FMA_MATH,
                       cudnnDataType_t compute = CUDNN_DATA_FLOAT,
                       cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION) {
    dnn().cudnnCreateConvolutionDescriptor(&descriptor);
    dnn().cudnnSetConvolution2dDescriptor(descriptor, padding, padding, stride, stride, 1, 1, mode,
                                          compute);
    dnn().cudnnSetConvolutionMathType(descriptor, math);
  }
  Convolution(const Convolution&) = delete;
  ~Convolution() { dnn().cudnnDestroyConvolutionDescriptor(descriptor); }
  cudnnConvolutionDescriptor_t descriptor = nullptr;
};

struct Pooling {
  Pooling(cudnnPoolingMode_t mode, int window, int stride, int padding = 0,
          cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN) {
    dnn().cudnnCreatePoolingDescriptor(&descriptor);
    dnn().cudnnSetPooling2dDescriptor(descriptor, mode, nan, window, window, padding, padding,
                                      stride, stride);
  }
  Pooling(const Pooling&) = delete;
  ~Pooling() { dnn().cudnnDestroyPoolingDescriptor(descriptor); }
  cudnnPoolingDescriptor_t descriptor = nullptr;
};

struct Handle {
  Handle() { dnn().cudnnCreate(&handle); }
  Handle(const Handle&) = delete;
  ~Handle() { dnn().cudnnDestroy(handle); }
  cudnnHandle_t handle = nullptr;
};

inline constexpr float kOne = 1, kZero = 0, kTwo = 2;
inline const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace stand_in
