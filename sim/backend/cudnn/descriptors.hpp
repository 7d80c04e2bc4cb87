// SPDX-License-Identifier: Apache-2.0
// RAII classes for cuDNN's descriptors. Dimensions are passed as N, C, H, W and K, C, R, S in every
// call; the format argument says that memory is NHWC and KRSC. Descriptors need no device.
#pragma once

#include <cstdint>

#include "sim/backend/backend.hpp"
#include "sim/backend/cudnn/api.hpp"

namespace halfscope::sim::backend::cudnn {

cudnnDataType_t cudnn_type(Dtype dtype);

/// A descriptor that is created by `Create` and freed by `Destroy`.
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
  operator Handle() const { return handle_; }  // NOLINT: implicit, for cuDNN's calls

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

/// Describes (N, H, W, C) tensors, and (M, C) tensors as images of one pixel.
struct TensorDescriptor : TensorHandle {
  TensorDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape);
};
/// Describes (K, R, S, C) weights.
struct FilterDescriptor : FilterHandle {
  FilterDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape);
};
/// `compute`: the type of the sums.
struct ConvolutionDescriptor : ConvolutionHandle {
  ConvolutionDescriptor(const CudnnApi& api, const Convolution& conv, cudnnDataType_t compute,
                        cudnnMathType_t math);
};
/// For max pooling, selects the deterministic algorithm that propagates NaNs.
struct PoolingDescriptor : PoolingHandle {
  PoolingDescriptor(const CudnnApi& api, const Pool& pool);
};

}  // namespace halfscope::sim::backend::cudnn
