// SPDX-License-Identifier: Apache-2.0
// Batch normalisation by kernels of our own, pooling by cuDNN. The gradient of max pooling has its
// own kernel: if several values are the largest, cuDNN does not specify which gets the gradient,
// and after a ReLU most windows of zeros are such. The kernel follows the rule of PyTorch and the
// emulation.
#include <fmt/format.h>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

/// Returns the memory of one value per channel. Throws std::invalid_argument unless it is binary32.
float* floats_of(const Tensor& of, std::int64_t channels) {
  if (of.dtype != Dtype::f32 || of.size() != channels) {
    throw std::invalid_argument(fmt::format(
        "sim: batch normalisation: expected {} values of F32 as parameters, found {} of {}",
        channels, of.size(), name_of(of.dtype)));
  }
  return static_cast<float*>(device_data(of));
}

kernels::BatchNorm layer_of(const Tensor& x, const BatchNormParameters& parameters,
                            const BatchNormSaved& saved) {
  kernels::BatchNorm layer;
  layer.rows = require_channels(x, parameters.gamma);
  layer.channels = parameters.gamma.size();
  layer.epsilon = static_cast<float>(parameters.epsilon);
  const auto floats = [&](const Tensor& of) { return floats_of(of, layer.channels); };
  layer.gamma = floats(parameters.gamma);
  layer.beta = floats(parameters.beta);
  layer.running_mean = floats(parameters.running_mean);
  layer.running_variance = floats(parameters.running_variance);
  layer.mean = floats(saved.mean);
  layer.inverse_deviation = floats(saved.inverse_deviation);
  return layer;
}

}  // namespace

void CudnnBackend::batch_norm_forward(const Tensor& x, BatchNormParameters& parameters,
                                      bool inference, BatchNormSaved& saved, Tensor& y) {
  require_same_size("batch normalisation", x, y);
  require_same_dtype("batch normalisation", {x, y});
  const Shape& channels = parameters.gamma.shape;
  if (!saved.mean) saved.mean = allocate_uninitialized(channels, Dtype::f32);
  if (!saved.inverse_deviation)
    saved.inverse_deviation = allocate_uninitialized(channels, Dtype::f32);
  const kernels::BatchNorm layer = layer_of(x, parameters, saved);
  if (inference) {
    kernels::batch_norm_running(layer, stream());
  } else {
    require_variance(layer.rows);
    kernels::batch_norm_statistics(layer, static_cast<float>(parameters.momentum), elements_of(x),
                                   stream());
  }
  kernels::batch_norm_forward(layer, elements_of(x), elements_of(y), stream());
}

void CudnnBackend::batch_norm_backward(const Tensor& x, const Tensor& dy,
                                       const BatchNormParameters& parameters,
                                       const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                       Tensor& dbeta, bool add) {
  require_same_size("batch normalisation", x, dy);
  require_same_size("batch normalisation", x, dx);
  require_same_dtype("batch normalisation", {x, dy, dx});
  const kernels::BatchNorm layer = layer_of(x, parameters, saved);
  kernels::batch_norm_backward(layer, elements_of(x), elements_of(dy), elements_of(dx),
                               floats_of(dgamma, layer.channels), floats_of(dbeta, layer.channels),
                               add, stream());
}

void CudnnBackend::pool_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  const TensorDescriptor in(api(), x.dtype, x.shape), out(api(), y.dtype, y.shape);
  const PoolingDescriptor pooling(api(), pool);
  device_->check(api().cudnnPoolingForward(device_->cudnn(), pooling, &kOne, in, device_data(x),
                                           &kZero, out, device_data(y)),
                 "cudnnPoolingForward");
}

void CudnnBackend::pool_backward(const Pool& pool, const Tensor& x, const Tensor& y,
                                 const Tensor& dy, Tensor& dx) {
  if (pool.kind == Pool::Kind::max) {
    const kernels::Windows windows{pool.kernel, pool.stride, x.shape[0],  x.shape[1],
                                   x.shape[2],  x.shape[3],  dy.shape[1], dy.shape[2]};
    require_same_dtype("a pool", {x, dy, dx});
    return kernels::max_pool_backward(windows, elements_of(x), elements_of(dy), elements_of(dx),
                                      stream());
  }
  const TensorDescriptor in(api(), x.dtype, x.shape), out(api(), y.dtype, y.shape);
  const PoolingDescriptor pooling(api(), pool);
  device_->check(
      api().cudnnPoolingBackward(device_->cudnn(), pooling, &kOne, out, device_data(y), out,
                                 device_data(dy), in, device_data(x), &kZero, in, device_data(dx)),
      "cudnnPoolingBackward");
}

}  // namespace halfscope::sim::backend::cudnn
