// SPDX-License-Identifier: Apache-2.0
// cuDNN's descriptors by RAII. Dimensions are N, C, H, W and K, C, R, S in every call; the format
// says that memory is NHWC and KRSC. Descriptors need no device.
#pragma once

#include <cstdint>

#include "sim/backend/backend.hpp"
#include "sim/backend/cudnn/api.hpp"

namespace halfscope::sim::backend::cudnn {

cudnnDataType_t cudnn_type(Dtype dtype);

/// A descriptor that `Create` made and `Destroy` frees.
template <class Handle, cudnnStatus_t (*CudnnApi::*Create)(Handle*),
          cudnnStatus_t (*CudnnApi::*Destroy)(Handle)>
class Descriptor {
 public:
  explicit Descriptor(const CudnnApi& api) : api_(api) {
    check(api, (api.*Create)(&handle_), "create a descriptor");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { (api_.*Destroy)(handle_); }
  operator Handle() const { return handle_; }  // NOLINT: stands for it in every call

 private:
  const CudnnApi& api_;
  Handle handle_ = nullptr;
};

using TensorHandle = Descriptor<cudnnTensorDescriptor_t, &CudnnApi::cudnnCreateTensorDescriptor,
                                &CudnnApi::cudnnDestroyTensorDescriptor>;
using FilterHandle = Descriptor<cudnnFilterDescriptor_t, &CudnnApi::cudnnCreateFilterDescriptor,
                                &CudnnApi::cudnnDestroyFilterDescriptor>;
using ConvolutionHandle =
    Descriptor<cudnnConvolutionDescriptor_t, &CudnnApi::cudnnCreateConvolutionDescriptor,
               &CudnnApi::cudnnDestroyConvolutionDescriptor>;
using PoolingHandle = Descriptor<cudnnPoolingDescriptor_t, &CudnnApi::cudnnCreatePoolingDescriptor,
                                 &CudnnApi::cudnnDestroyPoolingDescriptor>;

/// Of (N, H, W, C) tensors; of (M, C) ones as images of one pixel.
struct TensorDescriptor : TensorHandle {
  TensorDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape);
};
/// (K, R, S, C).
struct FilterDescriptor : FilterHandle {
  FilterDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape);
};
/// `compute`: the type sums are kept in.
struct ConvolutionDescriptor : ConvolutionHandle {
  ConvolutionDescriptor(const CudnnApi& api, const Convolution& conv, cudnnDataType_t compute,
                        cudnnMathType_t math);
};
/// Maxima: the deterministic ones, which pass NaNs on.
struct PoolingDescriptor : PoolingHandle {
  PoolingDescriptor(const CudnnApi& api, const Pool& pool);
};

}  // namespace halfscope::sim::backend::cudnn
