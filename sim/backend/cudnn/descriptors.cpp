// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/descriptors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace halfscope::sim::backend::cudnn {
namespace {

/// Checks an extent and converts it to int, the type of cuDNN's dimensions.
int extent(std::int64_t value, const Shape& shape) {
  if (value >= 1 && value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  throw std::invalid_argument(fmt::format("sim: cuDNN needs extents of 1 to {}, found a tensor {}",
                                          std::numeric_limits<int>::max(), shape));
}

/// Returns the extents as N, H, W, C.
Shape as_images(const Shape& shape) {
  if (shape.size() == 4) return shape;
  if (shape.size() == 2) return {shape[0], 1, 1, shape[1]};
  throw std::invalid_argument(
      fmt::format("sim: expected a tensor (N, H, W, C) or (M, C), found {}", shape));
}

}  // namespace

cudnnDataType_t cudnn_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return CUDNN_DATA_FLOAT;
    case Dtype::f16: return CUDNN_DATA_HALF;
    case Dtype::bf16: return CUDNN_DATA_BFLOAT16;
    default: throw std::invalid_argument("sim: tensors are F32, F16 or BF16");
  }
}

TensorDescriptor::TensorDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape)
    : TensorHandle(api) {
  const Shape s = as_images(shape);
  const auto at = [&](std::size_t i) { return extent(s[i], shape); };
  check(api,
        api.cudnnSetTensor4dDescriptor(*this, CUDNN_TENSOR_NHWC, cudnn_type(dtype), at(0), at(3),
                                       at(1), at(2)),
        "cudnnSetTensor4dDescriptor");
}

FilterDescriptor::FilterDescriptor(const CudnnApi& api, Dtype dtype, const Shape& shape)
    : FilterHandle(api) {
  const auto at = [&](std::size_t i) { return extent(shape.at(i), shape); };
  check(api,
        api.cudnnSetFilter4dDescriptor(*this, cudnn_type(dtype), CUDNN_TENSOR_NHWC, at(0), at(3),
                                       at(1), at(2)),
        "cudnnSetFilter4dDescriptor");
}

ConvolutionDescriptor::ConvolutionDescriptor(const CudnnApi& api, const Convolution& conv,
                                             cudnnDataType_t compute, cudnnMathType_t math)
    : ConvolutionHandle(api) {
  check(api,
        api.cudnnSetConvolution2dDescriptor(*this, conv.padding, conv.padding, conv.stride,
                                            conv.stride, 1, 1, CUDNN_CROSS_CORRELATION, compute),
        "cudnnSetConvolution2dDescriptor");
  check(api, api.cudnnSetConvolutionMathType(*this, math), "cudnnSetConvolutionMathType");
}

PoolingDescriptor::PoolingDescriptor(const CudnnApi& api, const Pool& pool) : PoolingHandle(api) {
  const cudnnPoolingMode_t mode = pool.kind == Pool::Kind::max
                                      ? CUDNN_POOLING_MAX_DETERMINISTIC
                                      : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  check(api,
        api.cudnnSetPooling2dDescriptor(*this, mode, CUDNN_PROPAGATE_NAN, pool.kernel, pool.kernel,
                                        0, 0, pool.stride, pool.stride),
        "cudnnSetPooling2dDescriptor");
}

}  // namespace halfscope::sim::backend::cudnn
